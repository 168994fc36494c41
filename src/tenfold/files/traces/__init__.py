"""Job traces: one documented table of our own, and readers of what others publish."""
