"""Recorded runs: replay bundles and shadow logs."""
