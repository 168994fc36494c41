"""allocate."""
