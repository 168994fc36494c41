"""Commands with the names that Slurm users know: `sbatch`, `squeue`, `scancel`, `sinfo`."""
