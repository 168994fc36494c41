"""Measurements by other tools: step logs, profiler traces, NCCL tests; stored baselines."""
