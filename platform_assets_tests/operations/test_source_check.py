"""Sources are compared with contracts that have their key and days in what a reading adds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from platform_assets.operations.source_check import check_source
from platform_assets.settings import load_settings
from platform_assets.sources.kafka import KafkaTopic
from platform_assets_tests.support.clicks import RAW


def test_a_topic_whose_records_have_no_key_but_their_offset_is_compared(
    monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    def sample(source: KafkaTopic, folder: Path) -> Path:
        file = folder / "sample.jsonl"
        file.write_text('{"order_id": 1, "amount": 2, "ordered_at": "2026-01-01T00:00:00Z", "shop": "x"}\n{}\n')
        return file

    monkeypatch.setattr(KafkaTopic, "sample", sample)
    contract = replace(RAW, key=("kafka_partition", "kafka_offset"), event_time="kafka_timestamp")
    found = check_source(load_settings(), contract)
    assert (found.wrong, found.drift) == ("", ("extra column shop kept in _rescued",))
    assert [column.name for column in found.proposed] == ["shop"]
