"""`slurm.conf`, and nodes as `scontrol` prints them."""
