"""Job traces: our own documented table, readers of other formats, detection. Add a format here."""
