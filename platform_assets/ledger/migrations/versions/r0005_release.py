"""What ledgers of versions from before the first release lack; the schema itself is in `ledger.schema`.

It adds what the schema has by now: a later migration has to look whether what it adds is there.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text, inspect

from platform_assets.ledger.schema import days, metadata

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Add tables, a column and indexes; of what was written before, what they hold is not known."""
    connection = op.get_bind()
    metadata.create_all(connection)
    if "git_commit" not in {column["name"] for column in inspect(connection).get_columns(days.name)}:
        op.add_column(days.name, Column("git_commit", Text, nullable=False, server_default=""))
    for table in metadata.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
