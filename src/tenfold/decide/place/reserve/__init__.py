"""reserve."""
