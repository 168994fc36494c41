"""Parallelism plans: how to split a model over GPUs, and how many GPUs to use."""
