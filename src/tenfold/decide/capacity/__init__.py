"""Capacity: how demand will grow, with an interval whose coverage was measured."""
