"""ranked."""
