"""What is so now: the running state, changed only by applying facts."""
