"""public."""
