"""Folders may have any name and depth, those of sources and those of the platform: files are taken all the same."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, Domain, LandingFiles
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.world import World

ARRIVAL = "2017-01-02"
FOLDERS = {"raw.flat": "notes", "raw.nested": "shop/tills", "raw.deep": "shop/no. 1/50% é+/2017-01-01"}


def raw(name: str, folder: str) -> Contract:
    return Contract(
        name=name,
        description="Words of people.",
        owner="tests@example.com",
        columns=(
            Column("id", "long", "Number.", nullable=False),
            Column("at", "timestamp", "When.", nullable=False),
            Column("note", "string", "Words."),
        ),
        key=("id",),
        source=LandingFiles(folder),
        event_time="at",
    )


DOMAIN = Domain(
    name="nested",
    tables=tuple(raw(name, folder) for name, folder in FOLDERS.items()),
    transforms="platform_assets_tests.support.domains.sensors.transforms",
)
FILES = {
    "a.jsonl": '{"id": 1, "at": "2017-01-02T10:00:00Z", "note": "a"}\n',
    "b.csv": 'id,at,note\n2,2017-01-01T10:00:00Z,"two\nlines"\n',
    "c.csv": "id,at,note\n3,2017-01-02T10:00:00Z,c\nthree,2017-01-02T10:00:00Z,d\n",
}


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    settings = load_settings(
        state=tmp_path_factory.mktemp("nested") / "a b é+#?",
        jars=JARS,
        domains=__name__,
        calendar_first=date(2017, 1, 1),
        calendar_last=date(2017, 1, 2),
        today=date(2017, 1, 2),
    )
    world = World(settings, spark)
    for folder in FOLDERS.values():
        for name, text in FILES.items():
            world.deliver(folder, ARRIVAL, name, text)
    world.refresh()
    return world


@pytest.mark.parametrize("table", list(FOLDERS))
def test_files_of_a_folder_are_taken_with_their_path_and_arrival_date(world: World, table: str) -> None:
    rows = {row["id"]: row for row in world.rows(table)}
    assert {number: row["note"] for number, row in rows.items()} == {1: "a", 2: "two\nlines", 3: "c"}
    assert {row["_arrival_date"] for row in rows.values()} == {date.fromisoformat(ARRIVAL)}
    assert [rows[n]["_arrival"] for n in (1, 2, 3)] == [f"{FOLDERS[table]}/{ARRIVAL}/{name}" for name in FILES]
    with world.open() as platform:
        arrivals = {arrival.path: arrival for arrival in platform.ledger.arrivals(table)}
    assert {path.rpartition("/")[2]: (a.taken, a.refused) for path, a in arrivals.items()} == {
        "a.jsonl": (1, 0),
        "b.csv": (1, 0),
        "c.csv": (1, 1),
    }
