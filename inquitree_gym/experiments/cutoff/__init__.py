"""Trees before and after a model's training cutoff."""
