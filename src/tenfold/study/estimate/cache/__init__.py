"""Estimates of a shared KV-cache tier."""
