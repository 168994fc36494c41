"""Capacity: how demand will grow, with an interval whose coverage was measured.

Add a forecast method in `methods.py`: those that suit a series are ranked on its past.
"""
