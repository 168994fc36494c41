"""spawner."""
