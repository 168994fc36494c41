"""Immutable blobs: written once to the backends of a tier, replicated or erasure-coded.

Belongs here: writing, reading, verifying and deleting blobs; shards and where they are placed.
Does not belong here: keys, buckets and rows; moving blobs between tiers (`objects/tiers`).
"""
