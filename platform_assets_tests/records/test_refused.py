"""What is refused is read back from documents as it was written: from manifests, and from those of open stages."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pydantic import TypeAdapter

from platform_assets.records.code_version import Version
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange
from platform_assets.records.refused import Attempt, Refused, TiedTo

DAY, OTHER = date(2017, 1, 1), date(2017, 1, 2)
AWKWARD = Attempt("f@g h", Version("by hand+engine1", "with 2017-01-02"))


def held(refused: Refused) -> Hold:
    return Hold("silver.sales", DAY, refused, "volume", "too few rows", "run", datetime(2017, 1, 3, tzinfo=UTC))


@pytest.mark.parametrize("refused", [AWKWARD, Attempt("f"), TiedTo(OTHER)])
def test_a_hold_in_a_document_of_a_stage_is_the_hold_it_was(refused: Refused) -> None:
    written = TypeAdapter(Hold).dump_json(held(refused))
    assert TypeAdapter(Hold).validate_json(written) == held(refused)


def test_what_a_rollback_refuses_is_in_its_manifest_part_by_part() -> None:
    change = TableChange(table="silver.sales", schema_string="{}", days={}, refuses={DAY: (AWKWARD,), OTHER: ()})
    assert change.model_dump(mode="json")["refuses"] == {
        "2017-01-01": [
            {"fingerprint": "f@g h", "made_by": {"code": "by hand+engine1", "configuration": "with 2017-01-02"}}
        ],
        "2017-01-02": [],
    }
    assert TableChange.model_validate_json(change.model_dump_json()) == change


def test_a_hold_refuses_an_input_by_whatever_code_and_a_tied_day_none() -> None:
    assert held(AWKWARD).refuses("f@g h")
    assert not held(AWKWARD).refuses("f")
    assert not held(TiedTo(OTHER)).refuses("")
