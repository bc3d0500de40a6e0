"""Judges of projections: the claims of a projected outcome, aligned with those of the true one."""
