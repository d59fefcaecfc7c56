"""Whatever bytes lie in a file, looking into it ends with a verdict, in bounded time and memory."""

from __future__ import annotations

import csv as python_csv
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given

from platform_assets.contracts import LandingFiles
from platform_assets.sources import inspect as looking
from platform_assets.sources.inspect import Inspection, inspect
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.listing import FolderArea, list_landing
from platform_assets_tests.support.cost import cost_of
from platform_assets_tests.support.domains.sensors import DOMAIN
from platform_assets_tests.support.hostile import (
    BOUNDS,
    HEADER,
    OBJECT,
    REFUSED,
    ROW,
    ROWS,
    SPARKS,
    csv,
    good,
    lines,
    mutated,
    parquet,
)

CONTRACT = DOMAIN.tables[0]
MOST_MEMORY = 64 << 20
MOST_SECONDS = 20.0
"""Of a processor, for a few megabytes."""


def landed(root: Path, name: str, content: bytes) -> LandedFile:
    file = root / "readings" / "2017-01-01" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    [found] = list_landing(FolderArea(root), LandingFiles("readings"), {}, until=date(2017, 1, 1), settle_s=0).pending
    return found


def looked_into(root: Path, name: str, content: bytes, limits: Limits = BOUNDS) -> Inspection:
    """As a file is looked into, with what that may cost."""
    file = landed(root, name, content)
    found, cost = cost_of(inspect, file, CONTRACT, limits)
    assert cost.seconds < MOST_SECONDS
    assert cost.memory < MOST_MEMORY
    assert len(found.reason or "") < 1000
    assert sum(map(len, found.notes)) < 1000
    return found


def test_there_are_many_of_them():
    assert len({*REFUSED, *SPARKS, *ROWS}) == len(REFUSED) + len(SPARKS) + len(ROWS) >= 60
    assert {name.partition(".")[2] for name in REFUSED} == {"csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_refused_with_its_reason(tmp_path, name):
    make, reason = REFUSED[name]
    assert (looked_into(tmp_path, name, make()).reason or "").startswith(reason)


@pytest.mark.parametrize("name", [*ROWS, *SPARKS])
def test_what_only_spark_can_judge_is_left_to_it(tmp_path, name):
    make = ROWS[name][0] if name in ROWS else SPARKS[name][0]
    assert looked_into(tmp_path, name, make()).reason is None


@pytest.mark.parametrize("number", range(4))
def test_good_files_are_taken_under_the_same_bounds(tmp_path, number):
    found = looked_into(tmp_path, *good(number))
    assert (found.reason, found.landed) == (None, 1)


@pytest.mark.parametrize("bound", ["file_rows", "file_columns"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_file_at_its_bound_is_taken_and_one_beyond_it_is_not(tmp_path, name, bound):
    content = {"a.csv": csv(ROW, ROW, ROW), "a.jsonl": lines(OBJECT, OBJECT, OBJECT), "a.parquet": parquet(rows=3)}
    found = looked_into(tmp_path, name, content[name], Limits(**{bound: 3}))
    assert (found.reason, found.landed) == (None, 3)
    beyond = looked_into(tmp_path, name, content[name], Limits(**{bound: 2})).reason
    if (name, bound) == ("a.jsonl", "file_columns"):
        assert beyond is None, "each line names its own"
    else:
        assert f"PLATFORM_{bound.upper()}" in (beyond or "")


def test_a_copy_needs_room_for_its_name(tmp_path):
    content = csv('"two\nlines",2017-01-01T10:00:00Z,1')
    assert looked_into(tmp_path, f"{'a' * 245}.csv", content).reason is None
    [first] = (tmp_path / "readings" / "2017-01-01").iterdir()
    first.unlink()
    reason = looked_into(tmp_path, f"{'a' * 246}.csv", content).reason or ""
    assert reason.startswith("has a name of more than 249 bytes")


def test_an_error_that_nobody_foresaw_is_that_files_problem(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a library\nfar away")

    monkeypatch.setattr(looking, "scan", fail)
    assert (
        inspect(landed(tmp_path, "a.csv", csv(ROW)), CONTRACT, BOUNDS).reason
        == "cannot be looked into: ZeroDivisionError: in a library"
    )


@given(mutated())
@example(("a.csv", csv(header=f"{HEADER},{'x' * (python_csv.field_size_limit() + 1)}")))
@example(("a.parquet", b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1"))
def test_whatever_bytes_a_file_has_there_is_a_verdict(file):
    name, content = file
    with TemporaryDirectory() as folder:
        found = inspect(landed(Path(folder), name, content), CONTRACT, BOUNDS)
    assert found.landed >= 0
    assert found.reason is None or found.reason.split()[0] in {
        "is",
        "has",
        "lacks",
        "looks",
        "leaves",
        "becomes",
        "cannot",
    }
