"""Slurm: run its commands, follow its queue, and start jobs through it."""
