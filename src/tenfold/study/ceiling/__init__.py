"""ceiling."""
