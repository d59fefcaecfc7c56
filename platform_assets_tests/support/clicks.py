"""Orders as a topic of Kafka has them, and as a raw table that reads it."""

from __future__ import annotations

from typing import Any

from platform_assets.contracts import Column, Contract, Domain, Input, same_day
from platform_assets.sources.kafka import RECORD, KafkaTopic

URL = "SHOP_KAFKA_URL"
REGISTRY = "SHOP_REGISTRY_URL"
_ORDER = (
    Column("order_id", "long", "Which order.", nullable=False),
    Column("amount", "decimal(12,2)", "Dollars."),
    Column("note", "string", "What the customer wrote.", may_be_absent=True),
    Column("ordered_at", "timestamp", "When it was ordered, UTC.", nullable=False),
    *RECORD,
)
RAW = Contract(
    name="raw.orders",
    description="Orders as the shop's topic has them.",
    owner="shop@example.com",
    columns=_ORDER,
    key=("order_id",),
    source=KafkaTopic("orders", topic="orders", url_env=URL),
    event_time="ordered_at",
    updated_at=("kafka_timestamp", "kafka_offset"),
    voided="is_tombstone",
    restatement_window_days=36_500,
    moves_within_days=3,
)
SILVER = Contract(
    name="silver.orders",
    description="One row per order.",
    owner="shop@example.com",
    columns=_ORDER,
    key=("order_id",),
    inputs=(Input("raw.orders", same_day()),),
)
DOMAIN = Domain("clicks", (RAW, SILVER), "platform_assets_tests.support.domains.transforms")


def order(number: int, amount: str = "10.00", at: str = "2026-01-01T10:00:00Z", **others: Any) -> dict[str, Any]:
    """An order as its topic has it."""
    return {"order_id": number, "amount": amount, "ordered_at": at, **others}
