"""What the market sells: offers, the terms of their providers, and what a price is for."""
