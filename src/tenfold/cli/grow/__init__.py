"""grow."""
