"""Verbs: each room below chooses what to do about one thing, and none knows another."""
