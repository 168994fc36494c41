"""What members of an array have in common, stored once: in event rows, in memory, in snapshots.

Events, replay and the API do not change: rows are joined when they are read.
"""
