"""The script for DuckDB, executed: the same rows and types as a reader of that release gets, wherever the lake lies."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import dataset
from platform_assets.lakehouse.releases import Release, current_release, release
from platform_assets.lakehouse.sql_views import statements
from platform_assets_tests.support.shelf import SALES, STORES, day, staged_manifest


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
