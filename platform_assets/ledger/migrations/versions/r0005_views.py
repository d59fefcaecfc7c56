"""What of effective-dated tables is valid on which day, computed once for each content."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table; whoever plans fills it."""
    op.create_table(
        "ledger_views",
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, primary_key=True),
        sa.Column("digests", sa.JSON, nullable=False),
    )
