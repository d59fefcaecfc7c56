"""A file that first showed columns otherwise than declared is announced once, whatever is declared since."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from platform_assets.contracts import Catalogue, Column
from platform_assets.orchestration.automation.announcements import drift_messages
from platform_assets.records.schema_drift import Drift, DriftEvent
from platform_assets_tests.support.clicks import RAW

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def event(column: str, since: datetime = NOW) -> DriftEvent:
    drift = Drift("extra", column, "kept in _rescued")
    return DriftEvent(RAW.name, drift, "orders/a.jsonl", date(2026, 3, 1), since, since, 1)


def test_a_file_is_announced_once_and_its_repaired_delivery_once_more() -> None:
    found = [event("shop"), event("till\0")]
    [(_, both)] = drift_messages(found, Catalogue((), (RAW,)), NOW)
    declared = replace(RAW, columns=(*RAW.columns, Column("shop", "string", "Shop.", may_be_absent=True)))
    [(_, one)] = drift_messages(found, Catalogue((), (declared,)), NOW)
    assert both.key == one.key
    assert "shop kept in _rescued; till" in both.title
    assert "\0" not in both.title
    again = list(drift_messages([*found, event("new", NOW.replace(hour=1))], Catalogue((), (RAW,)), NOW))
    assert len({message.key for _, message in again}) == 2
