"""A fast tier in front of a slow one, in virtual time."""
