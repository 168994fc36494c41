"""Admission: who calls, the limits of teams, token estimates, and the fair queue.

It knows nothing of forwarding, so every data plane can use it. Time is an argument.
"""
