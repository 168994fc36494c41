"""Recovering from failures: which nodes to take out of use."""
