"""Routing choices, pure: replica, revision, breaker, prefixes, rollback of canaries, overflow.

Time and chance are arguments; nothing here does I/O. Requests that HAProxy serves are balanced by
it: what it is told is in `gateway/haproxy`.
"""
