"""What is said of a command that takes its time, and when, by a clock that tests turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from platform_assets.cli.narration import QUICK_S, Narration
from platform_assets.progress import Progress, meanwhile

TABLE = "silver.transactions"
PROMISED_S = 10.0


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Listener:
    """Listens as the command's thread does, a few times a second, and notes when something was said."""

    clock: Clock
    narration: Narration
    heard: list[tuple[float, str]] = field(default_factory=list)

    def listen(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.clock.seconds += 0.25
            said = self.narration.lines()
            life = self.narration.sign_of_life()
            self.heard += [(self.clock.seconds, line) for line in (*said, *([life] if life else []))]

    @property
    def lines(self) -> list[str]:
        return [line for _, line in self.heard]


@pytest.fixture
def listener() -> Listener:
    clock = Clock()
    return Listener(clock, Narration("refresh", clock))


def test_nobody_waits_longer_than_promised_whatever_the_command_does(listener):
    tell = listener.narration.tell
    listener.listen(25)
    listener.narration.begin("refresh")
    tell(Progress("computing", TABLE, 0, 366))
    with meanwhile(tell, "starting Spark"):
        listener.listen(31.5)
    listener.listen(27)
    tell(Progress("computing", TABLE, 90, 366))
    listener.listen(19)
    tell(Progress("computing", TABLE, 366, 366, rows=1_500_000, finished=True))
    listener.listen(120)
    moments = [0.0, *(moment for moment, _ in listener.heard), listener.clock.seconds]
    assert max(after - before for before, after in pairwise(moments)) < PROMISED_S


def test_a_sign_of_life_says_what_is_done_how_far_it_is_and_since_when(listener):
    tell = listener.narration.tell
    listener.listen(5)
    tell(Progress("taking", "raw.products", 0, 1_400, "file"))
    listener.listen(8)
    tell(Progress("taking", "raw.products", 1_000, 1_400, "file"))
    with meanwhile(tell, "starting Spark"):
        listener.listen(8)
    listener.listen(8)
    tell(Progress("checking", TABLE))
    listener.listen(8)
    assert listener.lines == [
        "refresh, 5 s",
        "taking raw.products: 0 of 1,400 files, 8 s",
        "starting Spark, 8 s",
        "taking raw.products: 1,000 of 1,400 files, 16 s",
        "checking silver.transactions, 8 s",
    ]


def test_a_batch_moves_with_the_tasks_of_spark_and_is_never_done_before_it_is(listener):
    narration = listener.narration
    narration.tell(Progress("computing", TABLE, 0, 366, batch=366))
    reached = []
    for running in ({0: (0, 40)}, {0: (20, 40)}, {1: (0, 200), 2: (0, 8)}, {2: (8, 8)}, {}, {5: (1, 2)}):
        narration.see(running)
        reached.append(narration.now().reached)
    assert reached == sorted(reached), "a bar that goes back says nothing"
    assert 0 == reached[0] < reached[1] < reached[2] < reached[-1] < 366
    assert narration.now().count == "0 of 366 days, Spark at 1 of 2 tasks"
    listener.listen(8)
    assert listener.lines[-1] == f"computing {TABLE}: 0 of 366 days, Spark at 1 of 2 tasks, 5 s"
    narration.tell(Progress("computing", TABLE, 366, 366))
    assert narration.now().reached == 366


def test_jobs_of_before_are_none_of_a_batch(listener):
    narration = listener.narration
    narration.see({4: (0, 10), 90: (5, 10)})
    narration.tell(Progress("computing", TABLE, 0, 180, batch=90))
    narration.see({90: (9, 10)})
    assert narration.now().reached == 0
    narration.see({91: (10, 10)})
    first = narration.now().reached
    narration.tell(Progress("computing", TABLE, 90, 180, batch=90))
    assert (0 < first < 90, narration.now().reached) == (True, 90)


def test_a_table_that_is_finished_is_said_once(listener):
    tell = listener.narration.tell
    listener.listen(3)
    tell(Progress("computing", TABLE, 0, 3))
    listener.listen(1.25)
    tell(Progress("computing", TABLE, 3, 3, rows=7_001))
    tell(Progress("computing", TABLE, 3, 3, rows=7_001, finished=True))
    tell(Progress("indexing", "gold.daily_sales", 1, 1, rows=1, finished=True))
    tell(Progress("copying", "manifests", 2, 2, "file", finished=True))
    listener.listen(5)
    assert listener.lines == [
        f"{TABLE}: 3 days, 7,001 rows, 1.2 s",
        "gold.daily_sales: 1 day, 1 row",
        "manifests: 2 files",
    ]


def test_lines_wait_until_the_command_is_no_longer_quick(listener):
    listener.narration.tell(Progress("computing", TABLE, 3, 3, finished=True))
    listener.listen(QUICK_S - 0.25)
    assert not listener.heard
    listener.listen(0.5)
    assert listener.lines == [f"{TABLE}: 3 days"]


def test_a_part_that_was_quick_leaves_nothing_to_say(listener):
    listener.narration.begin("backup")
    listener.narration.tell(Progress("copying", TABLE, 3, 3, finished=True))
    listener.narration.end()
    listener.listen(4)
    assert not listener.heard


def test_what_a_part_left_unfinished_is_not_said_of_the_next(listener):
    narration = listener.narration
    narration.begin("first load")
    narration.tell(Progress("computing", TABLE, 0, 3))
    narration.tell(Progress("starting Spark"))
    narration.end()
    narration.begin("late corrections")
    listener.listen(5)
    assert listener.lines == ["late corrections, 5 s"]


def test_the_time_of_a_table_is_its_own(listener):
    tell = listener.narration.tell
    listener.narration.begin("demo")
    tell(Progress("taking", TABLE))  # and nothing to take, so that nobody says that it is over
    listener.listen(1)
    tell(Progress("computing", TABLE, 0, 3))
    with meanwhile(tell, "starting Spark"):
        listener.listen(6)
    listener.listen(3)
    tell(Progress("computing", TABLE, 3, 3, rows=9, finished=True))
    listener.listen(1)
    tell(Progress("taking", TABLE, 0, 2, "file"))
    listener.listen(2)
    tell(Progress("taking", TABLE, 2, 2, rows=5, finished=True))
    listener.listen(1)
    lines = [line for line in listener.lines if line.startswith(TABLE)]
    assert lines == [f"{TABLE}: 3 days, 9 rows, 3.0 s", f"{TABLE}: 2 days, 5 rows, 2.0 s"]


def test_work_that_goes_on_beside_the_start_of_spark_is_what_is_shown(listener):
    tell = listener.narration.tell
    tell(Progress("starting Spark"))
    tell(Progress("landing", "the sample", 0, 20))
    assert str(listener.narration.now()).startswith("starting Spark")
    listener.listen(1)
    tell(Progress("landing", "the sample", 5, 20))
    listener.listen(4)
    assert str(listener.narration.now()).startswith("landing the sample: 5 of 20 days")
    tell(Progress("landing", "the sample", 20, 20, finished=True))
    assert str(listener.narration.now()).startswith("starting Spark")
