"""Schema migrations of the journal, run by alembic."""
