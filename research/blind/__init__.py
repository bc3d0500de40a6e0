"""Labelled proposals by authors who saw topic, rules and the first observations alone, and how they are read."""
