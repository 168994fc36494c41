"""Advice on how to scale: up, out, on demand or to another site."""
