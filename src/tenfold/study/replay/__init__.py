"""Replay: recorded runs verified, run again under another policy, and compared."""
