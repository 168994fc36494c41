"""The composition root: reads configuration and joins rooms that do not know each other."""
