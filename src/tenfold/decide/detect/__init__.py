"""Detection: slow jobs, slow nodes, idle GPUs, and which part of a job got slower."""
