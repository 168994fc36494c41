"""Simulated runs of a grown fleet that several layers share."""
