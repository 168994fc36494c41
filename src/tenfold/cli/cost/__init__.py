"""`tenfold cost`: what a fleet cost, and what would cost less."""
