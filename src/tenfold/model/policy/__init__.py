"""Types of policies: ordering, governance (teams, quotas), Slurm settings."""
