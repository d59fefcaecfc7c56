"""docs/wrong-quarter.md as it stands there: a discount that was wrong for a quarter is corrected by a plan."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.settings import project_root
from platform_assets_tests.support.cli.commands import Said, run_apart, state
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.tills import NO_RECONCILIATION
from platform_assets_tests.support.world import MakeWorld, World

__all__ = ["state"]
"""A fixture of the command line."""

GUIDE = project_root() / "docs" / "wrong-quarter.md"
FIRST, LAST = date(2017, 1, 1), date(2017, 3, 31)
DAYS = [FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1)]
CONTRACTS = (
    NO_RECONCILIATION,
    ('RAW = Contract("raw', 'OFF = Column("discount", "decimal(12,2)", "Dollars.")\nRAW = Contract("raw'),
    ("(K, AT, PAID)", "(K, AT, PAID, OFF)"),
)
REFUSED, STOPPED = 3, 3


def paid(day: date, till: int) -> Decimal:
    return Decimal(100 * till + 10 * day.day + 10 * day.weekday())


def expected(day: date, times: int = 1) -> dict[int, Decimal]:
    """What a till took on a day, less a tenth, once or twice; in plain Python."""
    return {till: paid(day, till) - times * paid(day, till) / 10 for till in (1, 2)}


def of_week(day: date, times: int = 1) -> dict[int, Decimal]:
    """The same of the seven days up to it, as far as there are such."""
    week = [expected(day - timedelta(back), times) for back in range(7) if day - timedelta(back) >= FIRST]
    return {till: sum((one[till] for one in week), Decimal()) for till in (1, 2)}


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands() -> Iterator[str]:
    """What the guide has people type, in its order."""
    for block in blocks("sh"):
        yield from block.splitlines()


def write_code(home: Path, rule: str) -> None:
    write_domain(home, contracts=CONTRACTS, gold=(('F.sum("paid")', rule.strip()),))


@pytest.fixture
def shop(make_world: MakeWorld, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Ninety days of two tills, computed by the wrong code, as commands see them."""
    home = tmp_path / "home"
    write_code(home, blocks("python")[0])
    with importable(home):
        world = make_world(days=len(DAYS), domains=PACKAGE)
        for day in DAYS:
            rows = [
                {"till": till, "at": f"{day}T10:00:00Z", "paid": str(paid(day, till)), "discount": paid(day, till) / 10}
                for till in (1, 2)
            ]
            world.deliver_rows("sales", str(day), "a.jsonl", rows)
        world.refresh()
    values = {"STATE": world.settings.state, "DOMAINS": PACKAGE, "CALENDAR_LAST": LAST, "TODAY": LAST}
    for name, value in values.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    monkeypatch.setenv("PYTHONPATH", str(home))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    return world


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_the_guide_holds(shop: World, tmp_path: Path) -> None:
    """Every command is a process; four of them start Spark."""
    typed, home, hashes = commands(), tmp_path / "home", [""]

    def do(what: str, code: int = 0) -> Said:
        line = next(typed)
        assert line.startswith(f"platform-assets {what}"), line
        said = run_apart(*shlex.split(line.replace("HASH", hashes[-1]))[1:])
        print(f"$ {line}\n{said.out}{said.err}[{said.code}]")
        assert said.code == code, (line, said.out, said.err)
        if found := re.search(r"Hash `(\w+)`", said.out):
            hashes.append(found[1])
        return said

    def shown(table: str) -> dict[date, dict[int, Decimal]]:
        found: dict[date, dict[int, Decimal]] = {}
        for row in shop.rows(table):
            found.setdefault(row["event_date"], {})[row["till"]] = row["paid"]
        return found

    with importable(home):
        before = shop.digests()
        assert shown("gold.tills") == {day: expected(day, 2) for day in DAYS}
        assert shown("gold.week") == {day: of_week(day, 2) for day in DAYS}

    write_code(home, blocks("python")[1])
    assert "code" in do("status stale", 1).out
    do("backfill new discount")
    file = tmp_path / "plans" / "discount.yaml"
    file.write_text(f"{file.read_text()}\n{blocks('yaml')[0]}")
    explained = do("backfill explain").out
    assert "| 10 % | 18 | gold.tills 9, gold.week 9 |" in explained
    assert "Needs 1 approval, because it computes 180 days of tables" in explained
    assert run_apart("backfill", "apply", "plans/discount.yaml").code == REFUSED, "nobody approved it"
    do("backfill approve")
    stopped = do("backfill apply", STOPPED)
    assert "at 10 % 1 gate of the plan failed: gold.tills: sum of paid" in " ".join(stopped.err.split())
    assert "stopped at 0 %" in do("status backfills").out
    assert f"{expected(FIRST, 2)[1]:.2f}" in do("read").out
    with importable(home):
        assert shop.digests() == before, "readers see nothing of it"

    write_code(home, blocks("python")[2])
    assert run_apart("backfill", "apply", "plans/discount.yaml").code == REFUSED, "nobody approved the other code"
    do("backfill explain")
    assert len(set(hashes)) == 3
    do("backfill approve")
    done = do("backfill apply").out
    for share in (10, 50, 100):
        assert f"{share} %: gold.tills: sum of paid" in done
    assert "8 days computed once more and equal" in done
    with importable(home):
        assert shown("gold.tills") == {day: expected(day) for day in DAYS}
        assert shown("gold.week") == {day: of_week(day) for day in DAYS}
        after = shop.digests()

    do("backfill report")
    assert "180 days computed once more and equal" in do("admin verify").out
    assert "was applied before: published in release" in do("backfill explain", 1).out
    do("undo")
    with importable(home):
        assert shop.digests() == before
    (tmp_path / "plans" / "discount-2.yaml").write_text(file.read_text().replace("name: discount", "name: discount-2"))
    again = do("backfill explain").out
    assert "were put back by a person" in again
    assert "About 360 rows" in again, "days that were put back took no time, and are priced all the same"
    do("backfill approve")
    do("backfill apply")
    with importable(home):
        assert shop.digests() == after
    assert next(typed, None) is None, "the guide has more commands than were run"
