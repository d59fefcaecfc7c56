"""Rows of a release before a column was declared have no value of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from platform_assets.contracts import Column
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.sources import taken
from platform_assets.sources.source import SoFar
from platform_assets_tests.support.clicks import RAW

DAY, AT = date(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)


def test_a_column_that_was_declared_since_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = replace(RAW, columns=(*RAW.columns, Column("shop", "string", "Shop.", may_be_absent=True)))

    def rows(so_far: SoFar, table: str, *_: object) -> ds.Dataset | None:
        if table != contract.name:
            return None
        row: dict[str, object] = {"order_id": 1, "event_date": DAY, "kafka_offset": 1, "kafka_timestamp": AT}
        row |= {"_arrival_date": DAY, "_file_order": "", "_place": 1}
        row |= {"_kind": "record", "_arrival": "a"} | ({"shop": "x"} if so_far.release.number else {})
        return ds.dataset(pa.Table.from_pylist([row]))

    monkeypatch.setattr(taken, "_rows", rows)
    before = SoFar("", frozenset(), DAY, Lake.at(tmp_path), Release(0, {}))
    after = replace(before, release=Release(1, {}))
    assert taken.differences(contract, before, after, tmp_path, ["shop"], [DAY]) == {DAY: {"changed": 1}}
