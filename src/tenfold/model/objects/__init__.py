"""Nouns of the object namespace: tiers and their backends."""
