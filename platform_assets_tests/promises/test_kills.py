"""Killed at any step and run again, every command ends where an undisturbed run does, and readers never notice."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.kills.harness import (
    OF_OTHERS,
    OF_SPARK,
    ON_PAPER,
    WITH_SPARK,
    Reader,
    Rehearsal,
    kill,
    look,
    rehearse,
)
from platform_assets_tests.support.kills.paper import PAPER
from platform_assets_tests.support.kills.points import POINTS
from platform_assets_tests.support.kills.sales import SALES
from platform_assets_tests.support.shelf import in_process, killed

SEED = 0
READS, PAUSE_S = 10, 0.02
"""At least so many looks of the reader at each kill, and how long it rests between them, or it would take a core from
everything else; the whole matrix asks for more, and lets it look without end."""

SAMPLE = (
    "publish.after_manifest",
    "replace.after_commit",
    "write.before_rename",
    "release.after_file",
    "ledger.recording",
    "rollback.planned",
    "checkpoint.written",
    "delete.after_file",
    "recover.found",
)
"""What is looked at every time: a point of every phase, but of those that take a session."""


def test_every_phase_is_looked_at_every_time() -> None:
    assert {point.partition(".")[0] for point in SAMPLE} == POINTS.keys() - {*OF_OTHERS, *OF_SPARK}


def sampled(points: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(point, marks=() if point in SAMPLE else pytest.mark.proof) for point in points]


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    found = Reader(PAUSE_S)
    yield found
    found.close()


@pytest.fixture(scope="module")
def on_paper(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return rehearse(PAPER, SEED, tmp_path_factory.mktemp("paper"), None)


@pytest.fixture(scope="module")
def of_sales(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Rehearsal:
    return rehearse(SALES, SEED, tmp_path_factory.mktemp("sales"), Jvm.of(spark))


@pytest.mark.parametrize("point", sampled(ON_PAPER))
def test_what_takes_no_session(on_paper: Rehearsal, reader: Reader, tmp_path: Path, point: str) -> None:
    """A process is killed, and another one goes on where it died."""
    assert not kill(on_paper, point, reader, tmp_path, READS).problems


def test_a_rollback_that_dies_unseen_leaves_what_an_earlier_one_refused(on_paper: Rehearsal, tmp_path: Path) -> None:
    command = next(one for one in PAPER.commands if one.name == "roll forward")
    state = Path(shutil.copytree(on_paper.before[command.name], tmp_path / "state"))
    before = look(PAPER, state).holds
    assert before
    assert killed(in_process(command.run, state, SEED, None, failpoint="publish.before_release"))
    assert look(PAPER, state).holds >= before, "or the next tick would undo it"


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", WITH_SPARK)
def test_what_takes_a_session(of_sales: Rehearsal, reader: Reader, tmp_path: Path, point: str) -> None:
    """A process that computes with Spark is killed, and another one goes on where it died."""
    assert not kill(of_sales, point, reader, tmp_path, READS).problems
