"""Startup, shutdown, settings, state directory, connection limits, health, logs."""
