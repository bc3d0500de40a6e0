"""Inquiries: an agent re-lives the research behind a paper, told as a tree of subtopics, studies and results."""
