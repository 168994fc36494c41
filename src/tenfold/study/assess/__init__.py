"""Assess a cluster from its job history: use, waits and their causes, growth, three changes."""
