"""Capacity: what to order by when, from history, drivers and limits, and whether it was right."""
