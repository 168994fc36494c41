"""Connections: how many there are, what they may send, and how slow they may be."""
