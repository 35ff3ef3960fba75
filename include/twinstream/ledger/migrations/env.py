"""Alembic's entry: runs the migrations on the connection that the ledger hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
