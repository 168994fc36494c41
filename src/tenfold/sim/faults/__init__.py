"""Node faults in simulation: generated from a failure law, or replayed from a trace."""
