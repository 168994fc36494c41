"""Measurements of a simulated run: utilisation, waits, fairness, fragmentation, windows."""
