"""Provisioning: which rented capacity a job runs on, and when it changes."""
