"""Runs as data on disk: studies, manifests and copies of tasks."""
