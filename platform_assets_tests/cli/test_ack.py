"""What a person looked at asks for no look until it changes, or until a time; the decision is in the chain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.engine.platform import Author
from platform_assets.operations.opening import open_platform
from platform_assets.operations.quarantine import Acknowledged, Finding, acknowledge, in_force, name_and_mark
from platform_assets.operations.status import look
from platform_assets.records.decisions import Acknowledgement
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import Warned
from platform_assets.settings import Settings
from platform_assets.sources.landing import Problem
from platform_assets_tests.support.cli.products import DAY, DAYS, SILVER, computed, publish_on_paper

NOW = datetime(2017, 4, 9, 12, tzinfo=UTC)
SIGNED = ("--reason", "known since March", "--by", "zoe")
SEEN = Problem("tills/2017-04-08/notes.txt", "has the unknown ending '.txt'")
HALF = Warned(gate="volume", found="416 rows", expected="780 to 840 rows are usual")


def day(*warnings: Warned) -> DayRecord:
    return DayRecord(SILVER, date(2017, 4, 8), "p", "", "", 1, 1, 1, {}, {}, "", 1.0, warnings=warnings)


def decided(finding: Finding, until: datetime | None = None) -> Acknowledgement:
    name, mark = name_and_mark(finding)
    at = NOW - timedelta(days=1)
    return Acknowledgement(
        kind="acknowledgement", finding=name, mark=mark, until=until, reason="known", who="zoe", created_at=at
    )


@pytest.mark.parametrize(
    ("finding", "decisions", "is_quiet"),
    [
        (SEEN, [], False),
        (SEEN, [decided(SEEN)], True),
        (SEEN, [decided(SEEN, NOW + timedelta(seconds=1))], True),
        (SEEN, [decided(SEEN, NOW)], False),
        (SEEN, [decided(SEEN), decided(SEEN, NOW)], False),
        (SEEN, [decided(SEEN, NOW), decided(SEEN)], True),
        (Problem(SEEN.path, "is empty"), [decided(SEEN)], False),
        (SEEN, [decided(SEEN), decided(Problem(SEEN.path, "is empty"))], True),
        (Problem("tills/2017-04-08/other.txt", SEEN.message), [decided(SEEN)], False),
        (day(HALF), [decided(day(HALF))], True),
        (day(HALF, HALF.model_copy(update={"gate": "settled"})), [decided(day(HALF))], False),
        (day(HALF.model_copy(update={"found": "3 rows"})), [decided(day(HALF))], False),
    ],
)
def test_the_newest_decision_about_a_finding_stands_until_its_time_or_another_finding(
    finding: Finding, decisions: list[Acknowledgement], is_quiet: bool
) -> None:
    assert (Acknowledged(in_force(decisions, NOW)).of(finding) is not None) == is_quiet


def test_a_file_that_two_tables_refuse_is_acknowledged_in_one_go(products):
    again = Problem(SEEN.path, "lacks the column total")
    with open_platform(products) as platform:
        made = acknowledge(platform, [SEEN, again], [SEEN.path], Author("ack", "known", "zoe"))
        assert len(made) == 2
        assert Acknowledged.now(platform).without([SEEN, again]) == ()


def files_need_a_look(settings: Settings) -> bool:
    """Whether `status` exits with 1, were every day of every table there."""
    with open_platform(settings) as platform:
        return replace(look(platform, with_metrics=False), tables=()).needs_a_look


def test_a_broken_file_is_acknowledged_until_it_changes(run, products):
    file = products.landing_folder / "products" / f"{DAY}" / "notes.txt"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    name = f"products/{DAY}/notes.txt"
    assert (files_need_a_look(products), run("refresh").code) == (True, 1)
    for what, says in (
        (("nothing.csv", *SIGNED), "There is no finding of 'nothing.csv'"),
        ((name, *SIGNED, "--until", "soon"), "'soon' is not a time."),
        ((name, *SIGNED, "--until", "2017-01-01"), "2017-01-01 00:00 UTC is over"),
        ((name, "--by", "zoe"), "A decision needs --reason"),
    ):
        assert says in run("ack", *what).error
    said = run("ack", f"products/{DAY}/*", *SIGNED)
    assert (said.code, said.words) == (0, f"acknowledged {name} until it changes")
    assert (files_need_a_look(products), run("refresh").code, run("refresh", "--explain").code) == (False, 0, 0)
    status = run("status")
    assert "acknowledged 1 finding" in status.words
    assert "unknown ending" not in status.out
    assert f"acknowledged {name} by zoe: known since March" in run("status", "files").words
    assert run("status", "--json").json["acknowledged"] == [
        {"finding": name, "until": None, "who": "zoe", "reason": "known since March"}
    ]
    [entry] = run("status", "decisions", "--json").json
    made = entry["decision"]
    assert (made["kind"], made["finding"], made["who"]) == ("acknowledgement", name, "zoe")
    file.rename(file.with_name("notes.xyz"))
    assert files_need_a_look(products)


def test_warnings_of_a_day_are_acknowledged_by_table(run, products):
    with open_platform(products) as platform:
        contents = computed(platform, SILVER)
        days = {each: contents[each].model_copy(update={"warnings": (HALF,)}) for each in DAYS[:2]}
        version, parts = platform.version(SILVER), platform.configurations[SILVER].parts
        publish_on_paper(platform, SILVER, days, code_version=version.code, configuration=parts)
    assert "There is no finding" in run("ack", SILVER, "--days", f"{DAYS[2]}", *SIGNED).error
    assert run("ack", SILVER, "--days", f"{DAYS[0]}", *SIGNED, "--until", "2999-01-01").code == 0
    assert f"warned {SILVER}: 1 day with warnings" in run("status").words
    shown = run("status", "warnings").words
    assert f"{DAYS[1]} volume" in shown
    assert f"{DAYS[0]} volume" not in shown
    assert "acknowledged 1 finding" in shown
