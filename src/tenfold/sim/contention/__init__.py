"""Slowdown of jobs that share network, storage and rack power."""
