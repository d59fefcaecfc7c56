"""Migrate, for Alembic, the connection that `platform_assets.ledger.database` holds, in its transaction."""

from __future__ import annotations

from alembic import context

from platform_assets.ledger.schema import metadata, versions

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=versions.name,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
