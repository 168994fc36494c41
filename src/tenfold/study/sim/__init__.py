"""Around a simulation: bill, energy, workload, spares, packing limits."""
