"""The folder of one attempt: its files, logs, environment, end record, pruning."""
