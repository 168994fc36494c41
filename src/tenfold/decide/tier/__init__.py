"""Tiers: which objects should be promoted, demoted, prefetched or deleted.

Belongs here: pure decisions on uses, policies and orders of reading, the same in simulation.
Does not belong here: moving anything (`objects/tiers`).
"""
