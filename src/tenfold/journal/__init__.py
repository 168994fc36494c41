"""Everything that happened: the event log and what can be read off it, in SQLite or PostgreSQL."""
