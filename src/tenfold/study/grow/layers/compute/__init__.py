"""GPUs: GPU time, scaling efficiency of larger jobs, and services."""
