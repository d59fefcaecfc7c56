"""Update ledgers of versions before the first release; the schema itself is in `ledger.schema`.

It adds everything the schema has by now: a later migration has to check whether its additions exist.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

from platform_assets.ledger.schema import days, metadata, verdicts

revision = "0006"
down_revision = None


def upgrade() -> None:
    """Add tables, columns and indexes; their content for older rows is unknown."""
    connection = op.get_bind()
    metadata.create_all(connection)
    for added in (days.c.git_commit, verdicts.c.tries, verdicts.c.lives_by):
        if added.name not in {column["name"] for column in inspect(connection).get_columns(added.table.name)}:
            op.add_column(added.table.name, added.copy())
    for table in metadata.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
