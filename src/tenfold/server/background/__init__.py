"""Threads next to the loop: retention, pruning, sampling, shadow, the read-side fleet."""
