"""Logs matched again with another embedder or threshold: ``python -m research.rereading LOGS``."""
