"""How long the random agents take for a full traversal."""
