"""GPUs: time asked for, the efficiency of larger jobs, and services."""
