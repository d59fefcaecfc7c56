"""A day of which only some keys were computed is on record as such, also where a compaction took it over."""

from __future__ import annotations

from datetime import UTC, date, datetime

from platform_assets.ledger.sync import day_records
from platform_assets.planning.key_scope import mixed
from platform_assets.records.manifest import DayContent, Manifest, Scope, TableChange

DAY, TABLE = date(2017, 1, 2), "gold.daily_sales"
SCOPE = Scope(
    keys={"store_id": ("330",)}, rows=1, made_from="f2", code_version=mixed("before", "now"), reads={"silver.x": 1}
)


def content(scope: Scope | None = None, restores: str = "") -> DayContent:
    fingerprint = mixed("f1", "f2")
    return DayContent(
        files=(), base=(), digest="1-1-1-1-1", fingerprint=fingerprint, rows=1, bytes=1, scope=scope, restores=restores
    )


def change_with(day: DayContent) -> TableChange:
    return TableChange(table=TABLE, schema_string="{}", days={DAY: day}, reads={"silver.x": 9}, code_version="now")


def test_it_keeps_its_mixed_version_and_what_its_other_rows_were_made_from() -> None:
    made = change_with(content(SCOPE))
    manifest = Manifest(
        publication="one",
        created_at=datetime.now(UTC),
        kind="recompute",
        run="r",
        who="w",
        why="y",
        git_commit=None,
        tables=(made,),
    )
    assert Manifest.model_validate_json(manifest.model_dump_json()) == manifest
    taken_over = change_with(content(restores="one"))
    for records in (day_records(made, "one"), day_records(taken_over, "two", lambda name: manifest)):
        [record] = records
        assert (record.code_version, record.reads) == (SCOPE.code_version, {"silver.x": 1})
