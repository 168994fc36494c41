"""Notice what changed: whether a job runs slower than it did, and which part of it."""
