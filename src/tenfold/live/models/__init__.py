"""The model registry in the live world."""
