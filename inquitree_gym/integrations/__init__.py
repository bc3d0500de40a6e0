"""Adapters for trainers, harnesses and clients of other projects; all but `tasks` and `session` need an extra."""
