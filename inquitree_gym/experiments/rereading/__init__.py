"""Logs read again with another embedder or threshold."""
