"""Tiers: which objects should be promoted, demoted, prefetched or deleted.

Belongs here: pure decisions on uses, policies and orders of reading, the same in simulation.
Add a policy of a fast tier in `caches.py`; `study/tiering/compare.py` compares them.
Does not belong here: moving anything (`objects/tiers`).
"""
