"""What serving takes: prompt and decode steps, cache, batching, queueing, cold starts."""
