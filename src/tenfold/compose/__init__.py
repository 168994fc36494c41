"""Wiring: read settings and files, and connect rooms that do not import each other.

Belongs here: building a decider from a policy, a simulation from a fleet file and a trace, a
control plane from a journal, an executor factory and a loop (server/runtime/serve.py chooses it).
Does not belong here: anything that computes. Answers belong to study/<topic>, formulas to
physics; tests/architecture/test_folders.py refuses multiplication, division and numpy here.
"""
