"""Every engine, and the script for DuckDB, reads the same rows of the same release, wherever the lake lies."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from platform_assets.contracts import UnknownTableError
from platform_assets.lakehouse.errors import LakeError, NeverPublishedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import dataset, read_arrow, statements
from platform_assets.lakehouse.releases import Release, current_release, release
from platform_assets.operations.readers import read
from platform_assets.settings import Settings
from platform_assets_tests.support.shelf import SALES, STORES, day, staged_manifest


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path)


@pytest.fixture
def filled(settings: Settings) -> Lake:
    lake = Lake.at(settings.lake)
    publish(lake, staged_manifest(lake, {SALES: {day(n): [(f"ä{n}", n)] for n in range(5)}}))
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("new", 100)]}}, days=[day(0), day(4)]))
    return lake


def sums(engine: str, found: Any) -> tuple[int, int]:
    """Rows and cents, as the engine counts them."""
    match engine:
        case "arrow":
            return found.num_rows, sum(found["cents"].to_pylist())
        case "polars":
            return found.height, found["cents"].sum()
        case "pandas":
            return len(found), found["cents"].sum()
        case _:
            rows, cents = found.aggregate("count(*), coalesce(sum(cents), 0)").fetchall()[0]
            return rows, cents


@pytest.mark.parametrize("engine", ["arrow", "polars", "pandas", "duckdb"])
def test_every_engine_reads_a_lake_wherever_it_lies(lake: Lake, engine: Any, tmp_path: Path) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(n): [(f"ä{n}", n)] for n in range(5)}}))
    elsewhere = Settings(state=tmp_path / "state", lake=str(lake.root))
    assert sums(engine, read(SALES, engine=engine, settings=elsewhere)) == (5, 10)
    assert sums(engine, read(SALES, days=[day(4)], engine=engine, settings=elsewhere)) == (1, 4)


@pytest.mark.parametrize("engine", ["arrow", "polars", "pandas", "duckdb"])
def test_engines_agree_on_every_release_and_choice_of_days(filled: Lake, settings: Settings, engine: Any) -> None:
    choices: list[tuple[int | None, list[int] | None, tuple[int, int]]] = [
        (None, None, (4, 106)),
        (0, None, (5, 10)),
        (0, [4, 1], (2, 5)),
        (1, [0], (1, 100)),
        (1, [4], (0, 0)),
        (1, [], (0, 0)),
    ]
    for number, days, expected in choices:
        wanted = None if days is None else [day(n) for n in days]
        found = read(SALES, days=wanted, release=number, engine=engine, settings=settings)
        assert sums(engine, found) == expected, (number, days)


def test_only_files_of_the_days_asked_for_are_opened(filled: Lake) -> None:
    files = dataset(filled, SALES, [day(1), day(2)], 0).files
    assert sorted(Path(file).parent.name for file in files) == ["event_date=2017-01-02", "event_date=2017-01-03"]


@pytest.mark.parametrize("engine", ["arrow", "polars", "pandas", "duckdb"])
def test_every_engine_resolves_the_release_once(filled: Lake, settings: Settings, engine: Any) -> None:
    now, found = current_release(filled), read(SALES, engine=engine, settings=settings)
    publish(filled, staged_manifest(filled, {SALES: {day(0): [("later", 1)]}}))
    assert sums(engine, found) == (4, 106), "what was read stays, also where rows are fetched only now"
    assert sums(engine, read(SALES, release=now, engine=engine, settings=settings)) == (4, 106)
    assert sums(engine, read(SALES, engine=engine, settings=settings)) == (4, 7)


@pytest.mark.parametrize("days", [day(0), "2017-01-01", ["2017-01-01"], iter([datetime(2017, 1, 1, 12, tzinfo=UTC)])])
def test_days_are_dates_or_written_as_such_one_or_several(filled: Lake, settings: Settings, days: Any) -> None:
    assert read(SALES, days=days, settings=settings)["cents"].to_pylist() == [100]


@pytest.mark.parametrize("days", ["2017-02-30", ["soon"], [20170101], [None]])
def test_what_is_no_day_is_named(filled: Lake, settings: Settings, days: Any) -> None:
    with pytest.raises(LakeError, match=r"is not a day\..*\n?.*YYYY-MM-DD"):
        read(SALES, days=days, settings=settings)


def test_a_misspelt_table_is_answered_with_the_right_one(filled: Lake, settings: Settings) -> None:
    with pytest.raises(UnknownTableError, match=r"Did you mean silver\.sales\? Tables are silver\.sales\."):
        read("silver.sale", settings=settings)


def test_a_declared_table_without_content_is_called_never_published(filled: Lake, settings: Settings) -> None:
    with pytest.raises(NeverPublishedError, match=r"gold\.stores has never been published up to release 1"):
        read(STORES, settings=settings, declared=[SALES, STORES])


def test_a_table_of_a_later_release_is_not_in_an_earlier_one(filled: Lake) -> None:
    publish(filled, staged_manifest(filled, {STORES: {day(0): [("s", 1)]}}))
    with pytest.raises(NeverPublishedError, match="up to release 1"):
        read_arrow(filled, STORES, release=1)


def test_an_unknown_engine_is_refused(filled: Lake, settings: Settings) -> None:
    with pytest.raises(LakeError, match="'dask' is not an engine"):
        read(SALES, engine="dask", settings=settings)  # type: ignore[arg-type]


def test_reading_imports_neither_spark_nor_dagster() -> None:
    code = (
        "import sys; from platform_assets.lakehouse import publish, reading, staging_folders;"
        "print([name for name in ('pyspark', 'dagster', 'pandas', 'polars', 'duckdb') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert said.stdout.strip() == "[]"


@pytest.fixture
def odd(tmp_path: Path) -> Lake:
    """Two releases in a folder with everything that means something in a pattern, in SQL or in a path."""
    lake = Lake.at(tmp_path / "Ümläut #1 + a=b; 'q` *x? {y}, -- $z")
    publish(lake, staged_manifest(lake, {SALES: {day(n): [(f"ä'{n}", n)] for n in range(3)}}))
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("new", 100)]}, STORES: {day(0): [("s", 1)]}}))
    return lake


def run(connection: duckdb.DuckDBPyConnection, lake: Lake, shown: Release) -> None:
    connection.execute("".join(f"{statement};\n" for statement in statements(lake, shown, "duckdb")))


def rows(found: duckdb.DuckDBPyRelation) -> list[tuple[object, ...]]:
    return sorted(found.fetchall(), key=str)


@pytest.mark.parametrize("number", [0, 1])
def test_views_show_what_readers_of_the_release_see_also_later(odd: Lake, number: int) -> None:
    connection, shown = duckdb.connect(), release(odd, number)
    run(connection, odd, shown)
    publish(odd, staged_manifest(odd, {SALES: {day(1): [("later", 7)]}}))
    for table in shown.versions:
        view = connection.sql(f"SELECT * FROM {table}")
        read = connection.from_arrow(dataset(odd, table, release=shown))
        assert (view.columns, view.types) == (read.columns, read.types)
        assert rows(view) == rows(read) != []


def test_views_of_an_older_release_leave_no_table_of_a_newer_one_behind(odd: Lake, tmp_path: Path) -> None:
    connection = duckdb.connect(tmp_path / "kept.duckdb")
    run(connection, odd, current_release(odd))
    assert connection.sql(f"SELECT key FROM {STORES}").fetchall() == [("s",)]
    run(connection, odd, release(odd, 0))
    with pytest.raises(duckdb.CatalogException):
        connection.sql(f"SELECT * FROM {STORES}")
    assert len(rows(connection.sql(f"SELECT * FROM {SALES}"))) == 3


def test_a_table_without_rows_is_an_empty_view_with_its_types(odd: Lake) -> None:
    publish(odd, staged_manifest(odd, {SALES: {}}, days=[day(0), day(1), day(2)]))
    connection, now = duckdb.connect(), current_release(odd)
    run(connection, odd, now)
    view = connection.sql(f"SELECT * FROM {SALES}")
    assert view.types == connection.from_arrow(dataset(odd, SALES, release=now)).types
    assert rows(view) == []


def test_a_folder_that_duckdb_would_take_for_a_column_is_refused(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path / "Cents=5" / "lake")
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    with pytest.raises(LakeError, match=r"'Cents=5' of .* for the column cents of silver\.sales"):
        list(statements(lake, current_release(lake), "duckdb"))
