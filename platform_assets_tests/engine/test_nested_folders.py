"""Folders may have any name and depth, those of sources and those of the platform: files are taken all the same."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, Domain, LandingFiles
from platform_assets_tests.support.world import empty_world

ARRIVAL, FOLDER = "2017-01-02", "shop/no. 1/50% é+/2017-01-01"
RAW = Contract(
    name="raw.deep",
    description="Words of people.",
    owner="tests@example.com",
    columns=(
        Column("id", "long", "Number.", nullable=False),
        Column("at", "timestamp", "When.", nullable=False),
        Column("note", "string", "Words."),
    ),
    key=("id",),
    source=LandingFiles(FOLDER),
    event_time="at",
)
DOMAIN = Domain("nested", (RAW,), "platform_assets_tests.support.domains.transforms")
FILES = {
    "a.jsonl": '{"id": 1, "at": "2017-01-02T10:00:00Z", "note": "a"}\n',
    "b.csv": 'id,at,note\n2,2017-01-01T10:00:00Z,"two\nlines"\n',
    "c.csv": "id,at,note\n3,2017-01-02T10:00:00Z,c\nthree,2017-01-02T10:00:00Z,d\n",
}


def test_files_of_a_folder_are_taken_with_their_path_and_arrival_date(spark: SparkSession, tmp_path: Path) -> None:
    world = empty_world(tmp_path / "a b é+#?", spark, days=2, domains=__name__)
    for name, text in FILES.items():
        world.deliver(FOLDER, ARRIVAL, name, text)
    world.refresh()
    rows = {row["id"]: row for row in world.rows(RAW.name)}
    assert {number: row["note"] for number, row in rows.items()} == {1: "a", 2: "two\nlines", 3: "c"}
    assert {row["_arrival_date"] for row in rows.values()} == {date.fromisoformat(ARRIVAL)}
    assert [rows[n]["_arrival"] for n in (1, 2, 3)] == [f"{FOLDER}/{ARRIVAL}/{name}" for name in FILES]
    with world.open() as platform:
        arrivals = {arrival.path: arrival for arrival in platform.ledger.arrivals(RAW.name)}
    assert {path.rpartition("/")[2]: (a.taken, a.refused) for path, a in arrivals.items()} == {
        "a.jsonl": (1, 0),
        "b.csv": (1, 0),
        "c.csv": (1, 1),
    }
