"""Training: kernels, collectives, pipelines and memory, for arrays of plans."""
