"""Ceilings: the largest job each layer of a design supports, and the first limit."""
