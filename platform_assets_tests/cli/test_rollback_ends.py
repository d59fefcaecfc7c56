"""A rollback stands until what its days are made from is another one: that it ends is told, before and after."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from platform_assets.operations.lineage.ended_rollbacks import ended_rollbacks
from platform_assets.operations.opening import open_platform
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival
from platform_assets.records.refused import Attempt
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, RAW, SILVER, arrive, compute, computed, deliver


@pytest.fixture
def put_back(run: Run, products: Settings) -> Settings:
    """A day that was computed from a bad file, too, and rolled back, in release 8."""
    arrive(products, "good.csv", 2)
    compute(products)
    arrive(products, "bad.csv", 3)
    assert run("rollback", compute(products), "--reason", "prices were wrong", "--by", "zoe").code == 0
    return products


def words(text: str) -> str:
    return " ".join(text.split())


NAME = f"the rollback of 1 day of {SILVER} ({DAY}; release 8, zoe: prices were wrong)"


def test_a_file_that_ends_a_rollback_is_named_by_the_plan_and_by_why_before_and_after(
    run: Run, put_back: Settings
) -> None:
    assert "look" not in run("refresh", "--explain").out
    stays = words(run("why", SILVER, str(DAY)).out)
    assert "rolled back by zoe: prices were wrong" in stays
    assert f"bad.csv --reason '{SILVER} {DAY} was rolled back'" in stays

    other = arrive(put_back, "other.csv", 4)
    ends = f"look {NAME} ends once that is computed, because {other} changed it"
    assert ends in words(run("refresh", "--explain").out)
    assert run("refresh", "--explain", "--json").json["rollbacks_ending"][0]["files"] == [other]
    assert ends in words(run("why", SILVER, str(DAY)).out)

    with open_platform(put_back) as platform:
        stood = platform.ledger.holds()
        assert ended_rollbacks(platform, stood) == ()
        compute(put_back)
        platform.ledger.drop(stood)
        [ended] = ended_rollbacks(platform, stood)
        assert ended.sentence == f"{NAME} ended because {other} changed it; what it had taken back counts again"
    assert f"look {ended.sentence}" in words(run("why", SILVER, str(DAY)).out)
    assert run("why", SILVER, str(DAY), "--json").json["rollback_ended"]["files"] == [other]
    compute(put_back)
    assert "rollback" not in run("why", SILVER, str(DAY)).out, "what came after that is no news of it"


def withdraw(settings: Settings, path: str, still_there: str) -> None:
    """A file taken out again, as a publication has it: its rows, or those of another, still lie in the raw day."""
    gone = Arrival(
        table=RAW, path=f"w/{path}", arrival_date=DAY, size=1, sha256="w", modified_ns=1, kind="withdrawal", origin=path
    )
    deliver(settings, DAY, 4, still_there, [gone])


def test_what_was_rolled_back_and_then_withdrawn_is_a_note_and_no_warning(run: Run, put_back: Settings) -> None:
    bad = f"products/{DAY}/bad.csv"
    withdraw(put_back, bad, bad)
    said = words(run("refresh", "--explain").out)
    assert f"note {bad} was withdrawn, so {NAME} is no longer needed: its days are computed without it" in said
    assert "look" not in said
    assert run("refresh", "--explain", "--json").json["rollbacks_ending"][0]["withdrawn"] == [bad]
    with open_platform(put_back) as platform:
        stood = platform.ledger.holds()
        compute(put_back)
        platform.ledger.drop(stood)
        [ended] = ended_rollbacks(platform, stood)
    assert ended.is_done
    assert "is no longer" not in ended.sentence
    assert "was no longer needed: its days were computed without it" in words(run("why", SILVER, str(DAY)).out)


def test_where_another_file_was_withdrawn_what_was_rolled_back_counts_again(run: Run, put_back: Settings) -> None:
    good = f"products/{DAY}/good.csv"
    withdraw(put_back, good, f"products/{DAY}/bad.csv")
    said = words(run("refresh", "--explain").out)
    assert f"look {NAME} ends once that is computed" in said, "the file that was rolled back lies there and counts"
    withdraw(put_back, good, good)
    said = words(run("refresh", "--explain").out)
    assert f"look {NAME} ends once that is computed, because {good} was withdrawn; what it had" in said


def test_files_that_wait_may_end_a_rollback(run: Run, put_back: Settings) -> None:
    file = put_back.landing_folder / "products" / str(DAY) / "waits.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("product_id\n1\n")
    os.utime(file, (1, 1))
    said = words(run("refresh", "--explain").out)
    assert f"look {NAME} ends if what is taken for raw.products touches it" in said


def test_a_rollback_that_a_person_ends_is_told_with_who_and_why(put_back: Settings, run: Run) -> None:
    compute(put_back)
    assert f"look {NAME} ended with release 9 by " in words(run("why", SILVER, str(DAY)).out)


def test_what_a_gate_refuses_after_a_rollback_is_told_first_and_the_rollback_too(run: Run, put_back: Settings) -> None:
    other = arrive(put_back, "other.csv", 1)
    later = datetime.now(UTC) + timedelta(seconds=1)
    with open_platform(put_back) as platform:
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        message = f"{SILVER} on {DAY}: too few rows: 1 row"
        platform.ledger.hold([Hold(SILVER, DAY, refused, "volume", message, "a run", later)])
    for said in (words(run("status").out), words(run("why", SILVER, str(DAY)).out)):
        first, rest = said.split("too few rows: 1 row; and since ")
        assert first.endswith(" UTC: ")
        assert "UTC: rolled back by zoe: prices were wrong; readers see what was put back, 0 rows of release 8" in rest
        assert f"{other} --reason 'volume holds {SILVER} {DAY}'" in said
    [held] = run("why", SILVER, str(DAY), "--json").json["held_by"]
    assert (held["gate"], held["held_before"]["reason"]) == ("volume", "rolled back by zoe: prices were wrong")
    assert (
        f"{SILVER} {DAY}, held by volume"
        in run("accept", SILVER, "--days", str(DAY), "--reason", "few", "--by", "zoe", "--dry-run").out
    )
