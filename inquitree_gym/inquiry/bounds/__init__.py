"""Turns of random agents, measured and computed (appendix B)."""
