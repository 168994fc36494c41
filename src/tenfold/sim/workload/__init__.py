"""Workloads: generated from a mix, or a recorded history scaled up."""
