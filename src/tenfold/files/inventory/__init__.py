"""Inventories: nodes that a scheduler, a table or this machine lists, turned into a fleet file."""
