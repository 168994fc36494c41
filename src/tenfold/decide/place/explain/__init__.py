"""Explain: the first constraint that keeps a job pending, with counts."""
