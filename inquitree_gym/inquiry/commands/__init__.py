"""Verbs of inquiries."""
