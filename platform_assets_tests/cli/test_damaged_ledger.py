"""A ledger whose file is damaged: said when it is opened, and made anew without losing what can still be read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.opening import open_platform
from platform_assets.records.decisions import LateDecision
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.ledger_records import approval

COMMANDS = (["status"], ["stale"], ["why", TABLE, "2017-01-01"], ["late", "list"], ["audit", "verify"])


@pytest.fixture
def file(published: Settings) -> Path:
    with open_platform(published) as platform:
        platform.ledger.decide(approval())
    return published.state / "ledger.db"


def damage(file: Path, seed: int, bytes_: int) -> None:
    content, random = bytearray(file.read_bytes()), Random(seed)
    for place in random.sample(range(4096, len(content)), bytes_):
        content[place] ^= 1 + random.randrange(255)
    file.write_bytes(content)


@pytest.mark.parametrize("seed", range(6))
def test_no_command_ends_in_a_traceback_and_a_rebuild_makes_it_good(
    run: Run, published: Settings, file: Path, seed: int
) -> None:
    before = run("status", "--json").out
    damage(file, seed, 200)
    damaged = file.read_bytes()
    for command in COMMANDS:
        said = run(*command)
        assert said.code in (1, 3), (command, said.out)
        assert "is damaged or is not a ledger" in said.out + said.err
        assert "ledger rebuild" in said.out + said.err
    done = run("ledger", "rebuild", "--json").json
    assert Path(done["set_aside"]).read_bytes() == damaged
    assert done["publications"] == 2
    assert run("status", "--json").out == before
    assert run("audit", "verify").code == 0


def test_what_people_decided_is_read_out_of_what_is_left(run: Run, published: Settings, file: Path) -> None:
    content = file.read_bytes()
    # A name in a row is no longer what the index of rows says it is; decisions lie on other pages.
    with Ledger.open(published.ledger_url.get_secret_value(), read_only=True) as ledger:
        decided = ledger.decisions(LateDecision)
        name = next(iter(ledger.indexed()))
    assert decided
    file.write_bytes(content.replace(name.encode(), name.encode()[:-1] + b"!", 1))
    assert run("status").code == 3
    said = run("ledger", "rebuild")
    assert (said.code, "2 rows of holds and people's decisions" in said.out) == (0, True), said.err
    with Ledger.open(published.ledger_url.get_secret_value(), read_only=True) as ledger:
        assert ledger.decisions(LateDecision) == decided


def test_of_a_chain_that_is_damaged_in_the_middle_the_entries_before_are_kept(
    run: Run, published: Settings, file: Path
) -> None:
    with open_platform(published) as platform:
        for n in range(60):
            platform.ledger.decide(approval(f"{n} {'x' * 200}.csv"))
        head = platform.ledger.decision_head()
    content = bytearray(file.read_bytes())
    page = content.index(b'"30 xxx') // 4096 * 4096
    content[page : page + 4096] = bytes(4096)
    file.write_bytes(content)
    for ending in ("-wal", "-shm"):
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)
    assert run("status").code == 3
    assert "not all could be read of: decisions" in run("ledger", "rebuild").out
    assert run("audit", "verify").code == 0
    kept = run("audit", "head", "--json").json["decisions"]["number"]
    assert 0 < kept < 32
    said = run("audit", "verify", "--expect", f"releases=none,decisions={head}")
    assert (said.code, f"they end at {kept}: history was cut since" in said.out) == (1, True)


def test_a_file_that_never_was_a_ledger_is_left_where_it_is(run: Run, published: Settings, file: Path) -> None:
    for beside in published.state.glob("ledger.db*"):
        beside.unlink()
    file.write_text("somebody's notes")
    said = run("ledger", "rebuild")
    assert (said.code, "no SQLite database" in said.err) == (3, True)
    assert file.read_text() == "somebody's notes"
