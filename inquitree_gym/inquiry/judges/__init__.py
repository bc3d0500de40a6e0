"""Judges of conclusions."""
