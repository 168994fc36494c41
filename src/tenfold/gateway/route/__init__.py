"""Routing choices, pure: replica, revision, breaker, prefixes, rollback of canaries, overflow.

Time and chance are arguments; nothing here does I/O.
"""
