"""Fleets made from seeds, one module for each part of a data centre."""
