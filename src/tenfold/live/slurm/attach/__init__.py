"""See a Slurm cluster that others run: its nodes, queue and accounting, read-only."""
