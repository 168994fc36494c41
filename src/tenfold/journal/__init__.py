"""The journal: events, decisions and snapshots in SQLite or PostgreSQL.

Belongs here: append, restore, read tables, retention, backup, verification, migrations.
Does not belong here: applying events (fleet) or serving them over HTTP (server). Stored names
are pinned by tests/stored and never change with the Python names.
"""
