"""Decisions: pure functions from the state of the fleet to the actions to take.

Belongs here: placement (place), parallelism plans (layout), alarms and slow nodes (detect),
nodes that keep failing jobs (recover), when to start deferrable jobs (shift), how
many replicas a service needs (autoscale) and what becomes of them (serve), what to order or rent
(capacity, provision), which tier holds an object (tier).
Does not belong here: clocks, randomness, I/O, or one decider importing another. State that
deciders read belongs to fleet; running them belongs to engine.
"""
