"""Score: compare nodes that fit: best fit, fragmentation gradient. Add a placement score here."""
