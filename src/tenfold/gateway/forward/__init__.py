"""Forwarding of admitted requests to replicas, and of answers to clients.

Attempts, retries, hedges, shadows, event streams and their token counts.
"""
