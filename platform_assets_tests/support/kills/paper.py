"""A story on paper, without a JVM: publication, rollback, checkpoints, maintenance, recovery of rows made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage, publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations import deletion
from platform_assets.operations.deletion import delete_unneeded
from platform_assets.operations.maintenance import sum_up
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.history import WINDOWS
from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.kills.harness import Command, Story, Sums
from platform_assets_tests.support.meanwhile import usage_later
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import change, contents, day, in_process, killed, stage

RAW, SILVER, GOLD, OTHER = "raw.transactions", "silver.transactions", "gold.household_28d", "gold.stores"
"""Two that have contracts, read one from the other, and one that no contract knows."""
TABLES = (SILVER, GOLD, OTHER)
DAYS = tuple(day(n) for n in range(5))
HISTORY = 10
"""Publications before the first command: enough for a checkpoint to be due."""

Rows = list[tuple[str, int]]
Content = dict[str, dict[date, Rows]]


def settings(state: Path) -> Settings:
    """Of an installation whose calendar is the days of the story."""
    return load_settings(state=state, domains=WINDOWS, calendar_first=DAYS[0], calendar_last=DAYS[-1], today=DAYS[-1])


def _some(random: Random) -> Rows:
    return [(f"k{n}", random.randrange(1, 10**9)) for n in range(random.randint(1, 3))]


def _replacing(random: Random, tables: Iterable[str], days: int) -> Content:
    return {table: {when: _some(random) for when in sorted(random.sample(DAYS, days))} for table in tables}


def _written(seed: int) -> tuple[list[Content], Content, Content]:
    """The history, the correction that turns out to be wrong, and one more."""
    random = Random(seed)
    history = [_replacing(random, TABLES, len(DAYS))]
    history += [_replacing(random, TABLES, random.randint(1, 2)) for _ in range(HISTORY - 1)]
    return history, _replacing(random, TABLES, 2), _replacing(random, TABLES, 1)


def _after(seed: int, command: str) -> Content:
    """What is there after a command."""
    history, wrong, more = _written(seed)
    there = {"publish": [wrong], "rollback": [], "recover": [wrong, more]}
    found: Content = {table: {} for table in TABLES}
    for one in [*history, *there.get(command, [wrong])]:
        for table, days in one.items():
            found[table] |= days
    return found


def _expected(seed: int, command: str) -> Sums:
    there = _after(seed, command)
    return tuple(sum(cents for rows in there[table].values() for _, cents in rows) for table in TABLES)


def digest_of(rows: Rows) -> str:
    total = Digest()
    for row in rows:
        value = sha256(repr(row).encode()).digest()
        a, b, c, d = (int.from_bytes(value[n : n + 4], "big") for n in range(0, 16, 4))
        total += Digest(1, (a, b, c, d))
    return str(total)


def _lost_or_twice(state: Path, seed: int, command: str) -> list[str]:
    lake = Lake.at(settings(state).lake)
    wanted = {
        table: {when: sorted(rows) for when, rows in days.items()} for table, days in _after(seed, command).items()
    }
    return [
        f"{table} has the rows {found}, not {rows}"
        for table, rows in wanted.items()
        if (found := contents(lake, table)) != rows
    ]


def put(platform: Platform, run: str, tables: Mapping[str, Mapping[date, Rows]]) -> None:
    """Publish days of some tables, as a run does: unless they are that already."""
    digests = {table: {when: digest_of(rows) for when, rows in days.items()} for table, days in tables.items()}
    if all(digests[table].items() <= LakeSnapshot.now(platform).digests(table).items() for table in tables):
        return
    made_from = {table: {when: f"{run} {when}" for when in days} for table, days in tables.items()}
    if SILVER in tables:  # made from what is there: a rollback need not hold it
        silver, raw = platform.catalogue[SILVER], {RAW: LakeSnapshot.now(platform).digests(RAW)}
        made_from[SILVER] |= fingerprints(silver, tables[SILVER], raw, platform.calendar, {})
    with new_stage(platform, tuple(tables)) as (publication, _):
        changes = []
        for table, days in tables.items():
            stage(platform.lake, table, days, publication)
            made = change(platform.lake, table, publication)
            known = {
                when: one.model_copy(update={"digest": digests[table][when], "fingerprint": made_from[table][when]})
                for when, one in made.days.items()
            }
            reads = LakeSnapshot.now(platform).reads([RAW]) if table == SILVER else {}
            changes.append(made.model_copy(update={"days": known, "reads": reads}))
        arrivals = [_arrival(tables[RAW])] if RAW in tables else []
        publish_changes(platform, publication, "recompute", changes, Author(run, "a test"), arrivals)


def _arrival(days: Mapping[date, Rows]) -> Arrival:
    """A file of the last of some raw days, by which the source has had its time for all of them."""
    last, rows = max(days), sum(map(len, days.values()))
    path = f"transactions/{last}/on-paper.jsonl"
    return Arrival(
        table=RAW, path=path, arrival_date=last, size=1, sha256="", modified_ns=1, landed=rows, taken=rows
    )  # fmt: skip


def _begin(state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        put(platform, "delivery", {RAW: {when: [("r", 1)] for when in DAYS}})
        for number, content in enumerate(_written(seed)[0]):
            put(platform, f"history {number}", content)
        stage(platform.lake, OTHER, {DAYS[0]: [("never published", 1)]})


def _publish(state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        platform.settle()
        put(platform, "wrong", _written(seed)[1])


def _undo(run: str, by: str, state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        try:
            rollback(platform, chosen_publications(platform, run=run), Author(by, "it was wrong"))
        except PlatformError as error:
            # Who died after the release is told that it was done.
            newest = platform.ledger.newest()
            if (
                newest is None
                or newest.run != by
                or f"was rolled back since, by {newest.who} in release {newest.release}" not in error.what
            ):
                raise


def _checkpoints(state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        sum_up(platform)


def _maintenance(state: Path, seed: int, _: Jvm | None) -> None:
    """A year later, so that all of the history is beyond the window."""
    deletion.usage = usage_later  # type: ignore[assignment]
    with open_platform(settings(state)) as platform:
        delete_unneeded(platform, "stages")
        delete_unneeded(platform, "deletion")


def _publish_more(state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        put(platform, "more", _written(seed)[2])


def _dies_and_is_torn(state: Path, seed: int) -> None:
    """A publication that died after its first table, with half of the commit of the second on disk."""
    assert killed(in_process(_publish_more, state, seed, None, failpoint="publish.after_table"))
    path = Lake.at(settings(state).lake).table_path(GOLD)
    on_disk(commits.commit_file(path, commits.head_version(path) + 1)).write_bytes(b'{"commitInfo":{"timest')


def _recover(state: Path, seed: int, _: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        platform.settle()


PAPER = Story(
    name="paper",
    columns=tuple((table, "cents") for table in TABLES),
    settings=settings,
    begin=_begin,
    commands=(
        Command("publish", _publish),
        Command("rollback", partial(_undo, "wrong", "undo")),
        Command("roll forward", partial(_undo, "undo", "redo")),
        Command("checkpoints", _checkpoints),
        Command("maintenance", _maintenance),
        Command("recover", _recover, before=_dies_and_is_torn),
    ),
    expected=_expected,
    lost_or_twice=_lost_or_twice,
)
