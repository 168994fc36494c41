"""The object server as a process: settings, access keys, workers, metrics and sweeps."""
