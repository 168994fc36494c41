"""Tiers over blobs: opening them from a tier file, moves, scrub, rebuild, and changes of backends.

Belongs here: everything that moves, checks or repairs shards while clients read and write.
Does not belong here: how a shard is written or read (`objects/blobs`), or what should be in which
tier (`decide/tier`).
"""
