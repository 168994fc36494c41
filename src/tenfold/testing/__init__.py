"""Builders of nodes, jobs and fleets, for tests of your own policies."""
