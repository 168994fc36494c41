"""Batch scripts for Slurm: their `#SBATCH` lines become the keys of a job file."""
