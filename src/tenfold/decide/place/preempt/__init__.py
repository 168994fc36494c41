"""Preempt: which running jobs to stop for a job that is entitled to their GPUs."""
