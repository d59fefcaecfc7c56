"""Two versions of the code beside each other: nobody sees the new one, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from platform_assets.cli.changes_view import comparison_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.afterwards import Comparison, compare_plan, compare_record, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.files import PlanFileError
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.report import markdown, plain
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World

DAYS = 10
ALL_HISTORY = (
    ("as_of, same_day", "all_history, as_of, same_day"),
    ('Input("silver.sales", span(6))', 'Input("silver.sales", all_history())'),
)
"""Every day of the week's table reads all days before it."""

OF_ALL = (("sales.per_day()", "sales.per_day().where('source_date > date_sub(event_date, 7)')"),)
AUTHOR = Author("compare", "a test", "zoe")
Change = tuple[str, str]


def nth(number: int) -> date:
    return date(2017, 1, 1) + timedelta(number - 1)


def plan(table: str, **fields: Any) -> PlanFile:
    said = {
        "name": "cutover",
        "reason": "as quick as it can be",
        "owner": "ada",
        "tables": [table],
        "days": {"range": f"{nth(1)}..{nth(DAYS)}"},
        "rollout": [100],
        "afterwards": {"verify": 0},
    }
    return PlanFile.model_validate(said | fields)


@dataclass
class Tills:
    """Ten days of two tills, computed by the code of before."""

    world: World
    home: Path

    @contextmanager
    def by(self, gold: tuple[Change, ...] = (), contracts: tuple[Change, ...] = ()) -> Iterator[Platform]:
        with importable(write_domain(self.home, contracts=contracts, gold=gold)), self.world.open() as platform:
            yield platform

    def compare(self, platform: Platform, file: PlanFile, most_days: int = 2, **more: Any) -> Comparison:
        return compare_plan(platform, lambda: self.world.spark, file, AUTHOR, most_days, 3, **more)


def computed(
    make_world: MakeWorld, home: Path, gold: tuple[Change, ...] = (), contracts: tuple[Change, ...] = ()
) -> Tills:
    with importable(write_domain(home, contracts=contracts, gold=gold)):
        world = make_world(days=DAYS, domains=PACKAGE)
        for number in range(1, DAYS + 1):
            at = f"{nth(number)}T10:00:00Z"
            rows = [{"till": till, "at": at, "paid": f"{10 * number + till}.00"} for till in (1, 2)]
            world.deliver_rows("sales", str(nth(number)), "a.jsonl", rows)
        world.refresh()
    return Tills(world, home)


@pytest.mark.proof
def test_code_that_is_here_beside_what_readers_see_by_table_column_and_key(
    make_world: MakeWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tills = computed(make_world, tmp_path / "home")
    of_one = ('F.sum("paid")', 'F.sum(F.when(F.col("till") == 1, F.col("paid") + 1).otherwise(F.col("paid")))')
    only_paid = ('("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)', '("till",), (Amount("n", "0", "0"),)')
    with tills.by(gold=(of_one,), contracts=(only_paid,)) as platform:
        before, rows = tills.world.digests(), set(platform.lake.table_path("gold.tills").files())
        file = plan("gold.tills", downstream=False)
        found = tills.compare(platform, file)
        [table] = found.tables
        assert [day.day for day in table.days] == [nth(1), nth(DAYS)], "both ends are in every sample"
        [paid] = [column for column in table.columns if column.changed]
        assert (paid.name, paid.changed) == ("paid", 2)
        assert paid.before is not None
        assert paid.after is not None
        assert (paid.before.lowest, paid.before.highest) == (Decimal("11.00"), Decimal("102.00"))
        assert (paid.after.lowest, paid.after.highest) == (Decimal("12.00"), Decimal("102.00"))
        assert (paid.before.mean, paid.after.mean) == (56.5, 57.0)
        changed = [(example.day, example.key, example.values["paid"]) for example in table.examples]
        assert changed[0] == (nth(1), "till 1", (Decimal("11.00"), Decimal("12.00")))
        assert table.code[0] != (table.code[1],)
        assert not found.is_equal
        print_parts(comparison_report(found).parts)
        assert "paid" in capsys.readouterr().out
        assert any("`11.00 → 12.00`" in line for line in markdown(comparison_report(found).parts))
        assert plain(comparison_report(found).data)["tables"][0]["columns"][1]["changed"] == 2
        assert stage_names(platform.lake) == ()
        assert set(platform.lake.table_path("gold.tills").files()) == rows, "nothing of it stays"
        assert tills.world.digests() == before, "nobody sees it"
        with pytest.raises(PlanFileError, match="names none of these days"):
            tills.compare(platform, file, only=[nth(DAYS + 1)])


@pytest.mark.proof
def test_from_a_full_refresh_to_windows_by_dual_run_and_cutover(make_world: MakeWorld, tmp_path: Path) -> None:
    """The guide of docs/backfills.md: what was made of all history is made of seven days, and proved the same."""
    tills = computed(make_world, tmp_path / "home", gold=OF_ALL, contracts=ALL_HISTORY)
    gates = [{"table": "gold.week", "metric": "rows", "tolerance_percent": 0, "each_day": True}]
    gates += [{**gates[0], "metric": "sum", "column": "paid"}]
    file = plan("gold.week", gates=gates, days={"stale": True})
    with tills.by(contracts=(("span(6)", "span(5)"),)) as platform:
        before = tills.world.digests()["gold.week"]
        wrong = tills.compare(platform, file, DAYS)
        assert not wrong.is_equal
        assert [day.day for table in wrong.tables for day in table.days if not day.is_equal] == [
            nth(n) for n in range(7, DAYS + 1)
        ], "whose seventh day is left out"
    with tills.by() as platform:
        assert tills.compare(platform, file, DAYS).is_equal
        record = apply(platform, lambda: tills.world.spark, file, AUTHOR)
        assert record.state == "published"
        assert tills.world.digests()["gold.week"] == before
        shown = compare_record(platform, record, 3)
        assert shown.is_equal
        assert shown.what == f"release {record.release}, which it published"
        roll_back(platform, "cutover", AUTHOR)
        assert tills.world.digests()["gold.week"] == before
