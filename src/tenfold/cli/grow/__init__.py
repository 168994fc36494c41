"""`tenfold grow`: what breaks first as the fleet grows, and what fixes it."""
