"""Fleets with a bottleneck planted in them, and what `grow` should find first."""
