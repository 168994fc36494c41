"""Placement for many teams: quotas, fair share, promises, preemption."""
