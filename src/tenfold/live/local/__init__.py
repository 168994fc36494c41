"""The local executor: gangs of real processes on this machine, whatever nodes it stands for.

Modules that the spawner loads import nothing heavy: every supervisor is a fork of it.
"""
