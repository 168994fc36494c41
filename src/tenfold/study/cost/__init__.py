"""What a fleet cost, by whom it was used, and what would cost less."""
