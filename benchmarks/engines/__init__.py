"""Real engines as replicas: vLLM on the CPU."""
