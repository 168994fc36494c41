"""member."""
