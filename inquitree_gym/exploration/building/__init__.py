"""Fictional libraries and the tasks about them, as functions of a seed and a world."""
