"""Upkeep: spares, people, and monitoring."""
