"""Timings that other tools write: step logs, traces, network tests, kernel summaries."""
