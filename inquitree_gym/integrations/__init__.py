"""Adapters for trainers, harnesses and clients of other projects. All but `tasks` and `session` need an extra."""
