"""Routing choices, pure: replica, revision, breaker, prefixes, rollback of canaries, overflow.

Time and chance are arguments; nothing here does I/O. Requests that HAProxy serves are balanced by
it, as configured in `gateway/haproxy`.
"""
