"""The tiered object namespace: one S3 name space over many backends.

Belongs here: immutable blobs over backends (`blobs`), tiers and moves between them (`tiers`), the
S3 protocol, the catalogue of keys and the server process.
Does not belong here: which object should be in which tier (`decide/tier`), formulas (`physics`).
"""
