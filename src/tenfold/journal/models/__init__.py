"""The read tables of the model registry: rows, how events change them, and queries."""
