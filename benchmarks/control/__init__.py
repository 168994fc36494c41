"""How much a control plane takes, side by side with Slurm, HyperQueue and Ray."""
