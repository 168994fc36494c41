"""Fixes of a break: which is taken, how much of it, and the fleet that it leads to."""
