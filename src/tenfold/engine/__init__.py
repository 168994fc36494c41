"""The loop that both worlds share, and what can be asked of its record."""
