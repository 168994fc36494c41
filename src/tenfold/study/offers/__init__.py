"""What to rent, from whom, and what leaving would cost."""
