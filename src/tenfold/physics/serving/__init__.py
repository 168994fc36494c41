"""Serving: prefill and decode steps, KV cache, batching, queueing, cold starts."""
