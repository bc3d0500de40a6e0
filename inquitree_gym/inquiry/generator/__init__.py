"""Synthetic research trees: fiction from a seed, with any number of subtopics and a hidden causal model."""
