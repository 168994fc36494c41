"""Alembic environment: runs the revisions on the connection that the program passes."""

from alembic import context

from tenfold.journal.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
# The transaction is the caller's: an upgrade that fails leaves the database as it was.
context.run_migrations()
