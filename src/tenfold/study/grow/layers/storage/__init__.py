"""Storage: what a tier holds, reads and writes, and how many read at once."""
