"""Slurm's scheduling: multifactor priority, main pass, backfill, node selection."""
