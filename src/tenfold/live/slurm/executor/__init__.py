"""The Slurm executor: attempts are Slurm jobs, one `sbatch` for each."""
