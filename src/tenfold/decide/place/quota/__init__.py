"""Quota: the tree of teams, their allocations, requests against quota, decayed usage."""
