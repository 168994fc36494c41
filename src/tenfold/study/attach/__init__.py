"""What another scheduler did, as a journal: observe, recommend, act."""
