"""The local executor: gangs of real processes on this machine, on real or virtual nodes.

Modules that the spawner loads import nothing heavy: every supervisor is a fork of it.
"""
