"""Autoscalers of others, re-implemented from their documented defaults: to compare with.

Each is one file, named in `study/autoscale/policies.py`. None of them runs live. Where a system
leaves a target to its user, the target is a share of what the slots of a replica can do:
`utilisation`.
"""
