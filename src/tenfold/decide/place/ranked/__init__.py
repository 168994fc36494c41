"""Policies that order jobs by one key: FIFO, shortest first, least attained service, learned."""
