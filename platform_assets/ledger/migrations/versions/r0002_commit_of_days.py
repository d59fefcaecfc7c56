"""The commit of the code that computed a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column; of days that are there already, it is not known."""
    op.add_column("ledger_days", sa.Column("git_commit", sa.Text, nullable=False, server_default=""))
