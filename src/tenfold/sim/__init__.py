"""The simulated world: virtual time, seeded randomness, recorded or generated jobs and faults.

Belongs here: the world that the engine drives, contention between jobs, workload and fault
generators, and measurements of a run.
Does not belong here: deciders (decide), reading traces (files/traces), comparing runs (study).
"""
