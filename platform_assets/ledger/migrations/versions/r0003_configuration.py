"""The configuration that a day was computed under."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Days recorded before have none, which counts as unknown; a rebuild takes it from the manifests."""
    op.add_column("ledger_days", sa.Column("configuration", sa.Text, nullable=False, server_default=""))
