"""The current state of the fleet, changed only by applying events.

Belongs here: nodes, pending and running jobs, the index of free capacity, topology, invariants,
read-only views for deciders, and scratch copies for tentative changes.
Does not belong here: choosing what to do (decide) or storing events (journal).
"""
