"""What was refused is read from its file once more after a fix, and then is as if it had been right from the first."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from platform_assets.engine.ingest.aside import QuarantineError, aside, refused_files
from platform_assets.engine.ingest.ingest import replay
from platform_assets.engine.refresh import refresh
from platform_assets.operations.quarantine import discard, lines, replay_quarantined
from platform_assets.planning.rows_aside import WHOLE_FILE, AsideSelection, grouped
from platform_assets.records.manifest import Arrival
from platform_assets_tests.support.history import no_session, person
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World, recompute

RAW, SILVER = "raw.sales", "silver.sales"
AT, VOIDS = "sales/2017-01-02", "sales/2017-01-02/voids.jsonl"
ALL, PART = f"{AT}/all.jsonl", f"{AT}/part.csv"
COLUMNS = (
    'Column("op", "string", "U or D."), Column("note", "string", "Free text."{absent}))\nRAW = Contract("raw.sales", '
    '"As delivered.", "me", (K, AT, PAID, *MORE), ("till", "at"), '
    'source=LandingFiles("sales", order="modified"),{voided}'
)
HEAD = 'RAW = Contract("raw.sales", "As delivered.", "me", (K, AT, PAID), ("till", "at"), source=LandingFiles("sales"),'
"""The line of the contract that is replaced."""
DROPPED = (("return sales", "return sales.drop('op', 'note')"),)


@contextmanager
def declared(folder: Path, *, right: bool, more: str = "") -> Iterator[None]:
    """The domain, mended or not: by the mended contract files may lack a note."""
    text = "MORE = (" + more + COLUMNS.format(absent=", may_be_absent=True" if right else "", voided="")
    with importable(write_domain(folder, contracts=((HEAD, text),), silver=DROPPED)):
        yield


def delivered(world: World) -> World:
    """Two tills, then a deletion and a sale with broken amounts, a file without a note, and what corrects its sale."""
    for till, day in ((1, 1), (2, 2)):
        row = {"till": till, "at": f"2017-01-0{day}T02:00:00Z", "paid": "1.00", "op": "U", "note": ""}
        world.deliver_rows("sales", f"2017-01-0{day}", "a.jsonl", [row])
    gone = {"till": 1, "at": "2017-01-01T02:00:00Z", "paid": "none", "op": "D", "note": ""}
    rows = [gone, {**gone, "till": 3, "op": "U", "paid": "?"}, {**gone, "till": 4, "op": "U", "paid": "4.00"}]
    world.deliver_rows("sales", "2017-01-02", "voids.jsonl", rows)
    world.deliver("sales", "2017-01-02", "b.csv", "till,at,paid,op\n5,2017-01-02T02:00:00Z,5.00,U\n")
    newer = {"till": 5, "at": "2017-01-02T02:00:00Z", "paid": "6.00", "op": "U", "note": ""}
    changed_at(world.deliver_rows("sales", "2017-01-02", "c.jsonl", [newer]), ago_s=40)
    return world


def changed_at(file: Path, *, ago_s: float) -> None:
    at = time.time() - ago_s
    os.utime(file, (at, at))


def replayed(
    world: World, *, spark: bool = True, error: str | None = None, arrival: str | None = None
) -> list[Arrival]:
    with world.open() as platform:
        session = (lambda: world.spark) if spark else no_session
        done = replay(platform, session, AsideSelection(RAW, None, error, arrival), person())
        return [each for taken in done for each in taken.arrivals]


def stay(world: World) -> list[tuple[str, int, int]]:
    with world.open() as platform:
        groups = grouped(aside(platform, AsideSelection(RAW)))
    return [(group["error"], group["rows"], group["attempts"]) for group in groups]


def test_what_a_mended_contract_can_take_enters_as_if_it_had_been_right_from_the_first(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """A refresh, two replays and a refresh; what comes out is what the files say by the mended contract."""
    world = delivered(make_world(days=3, domains=PACKAGE))
    broken = "paid: not decimal(12,2)"
    with declared(tmp_path / "wrong", right=False):
        world.refresh()
        assert stay(world) == [(broken, 2, 1), (WHOLE_FILE, 1, 1)]
        with world.open() as platform:
            rows = aside(platform, AsideSelection(RAW, error=broken))
            assert [(row.number, lines(platform, rows)[row]) for row in rows] == [(1, 1), (2, 2)]
            assert not any(row.payload for row in rows)  # which may be large, and nobody asked to see
        in_vain = replayed(world)
        assert [(each.kind, each.taken) for each in in_vain] == [("delivery", 0), ("replay", 0)]
        assert stay(world) == [(broken, 2, 2), (WHOLE_FILE, 1, 2)]
    with declared(tmp_path / "right", right=True):
        for name in ("b.csv", "voids.jsonl"):  # put back as they were
            changed_at(world.settings.landing_folder / AT / name, ago_s=20)
        done = replayed(world)
        assert [(each.kind, each.origin, each.landed, each.taken, each.refused) for each in done] == [
            ("delivery", None, 1, 1, 0),
            ("replay", VOIDS, 2, 0, 2),
        ]
        assert stay(world) == [(broken, 2, 3)]
        with world.open() as platform:
            assert platform.ledger.refused_rows() == {RAW: 2}
        world.refresh()
        for table in (SILVER, "gold.tills"):
            assert {row["till"]: row["paid"] for row in world.rows(table)} == {1: 1, 2: 1, 4: 4, 5: 6}


@pytest.mark.proof
def test_what_cannot_be_replayed_is_refused_by_name_and_what_is_discarded_is_left_alone(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """A refresh, another of a file that is refused whole again, and one replay."""
    world = delivered(make_world(days=3, domains=PACKAGE))
    row = '{"till": 6, "at": "2017-01-02T02:00:00Z", "paid": "?", "op": "U", "note": ""}'
    world.deliver("sales", "2017-01-02", "all.jsonl", f"{row}\n{{\n")
    row = "7,2017-01-02T02:00:00Z,?,U,none\n"
    world.deliver("sales", "2017-01-02", "part.csv", f"till,at,paid,op,note\n{row}{row.replace('?', '7.00')}")
    with declared(tmp_path / "wrong", right=False):
        world.refresh()
        for wrong, says in (
            ({"error": "paid: not decimal(12,3)"}, "Did you mean paid: not decimal(12,2)?"),
            ({"arrival": "sales/2017-01-02/void.jsonl"}, "Did you mean sales/2017-01-02/voids.jsonl?"),
        ):
            with pytest.raises(QuarantineError) as refused:
                replayed(world, spark=False, **wrong)
            assert says in str(refused.value)
        left = [("broken line: not one JSON object", 1, 1), ("paid: not decimal(12,2)", 2, 1)]
        with world.open() as platform:
            with pytest.raises(QuarantineError, match="sets no rows aside"):
                aside(platform, AsideSelection("gold.tills"))
            with pytest.raises(QuarantineError, match=r"No rows of raw\.sales, 2017-01-03 are set aside\."):
                discard(platform, AsideSelection(RAW, frozenset({date(2017, 1, 3)})), person())
            assert [file.path for file in refused_files(platform).in_large_part] == [PART, VOIDS]
            discard(platform, AsideSelection(RAW, arrival=VOIDS), person("they know"))
            assert [file.path for file in refused_files(platform).in_large_part] == [PART]
        assert stay(world) == [*left, (WHOLE_FILE, 1, 1)]
        for wrong in ({"error": left[0][0]}, {"error": left[0][0], "arrival": ALL}):
            with pytest.raises(QuarantineError, match=r"all its 2 refused rows are read once more, not 1 of them"):
                replayed(world, spark=False, **wrong)
        file = world.settings.landing_folder / AT / "b.csv"
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(QuarantineError, match=r"b\.csv is not among the files of sales any more"):
            replayed(world, spark=False)
        world.deliver("sales", "2017-01-02", "b.csv", content + b"6,2017-01-02T02:00:00Z,5.00,U\n")
        with pytest.raises(QuarantineError, match=r"b\.csv was replaced since it came"):
            replayed(world, spark=False)
        with world.open() as platform:
            discard(platform, AsideSelection(RAW, arrival=f"{AT}/b.csv"), person("of no use"))
        assert stay(world) == left
        world.refresh()  # A decision is about the file that was there.
        assert stay(world) == [*left, (WHOLE_FILE, 2, 2)]
        # What is named is meant, though somebody discarded it.
        assert [each.refused for each in replayed(world, arrival=VOIDS)] == [2]
    with declared(tmp_path / "wider", right=False, more='Column("extra", "string", "More."), '):
        with world.open() as platform:
            before = platform.current_release()
        with pytest.raises(QuarantineError, match=r"part\.csv .*extra"):
            replayed(world, arrival=PART)
        with world.open() as platform:
            assert (platform.current_release(), platform.ledger.refused_rows()) == (before, {RAW: 5})


@pytest.mark.proof
def test_a_quarantined_row_comes_back_with_its_day_once_its_rule_is_mended(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """Two refreshes by different rules."""
    world = make_world(days=3, domains=PACKAGE)
    rows = [{"till": n, "at": "2017-01-01T02:00:00Z", "paid": paid} for n, paid in ((1, "1.00"), (2, "-2.00"))]
    world.deliver_rows("sales", "2017-01-01", "a.jsonl", rows)
    chosen, one = AsideSelection(SILVER), AsideSelection(SILVER, arrival="sales/2017-01-01/a.jsonl")
    with importable(write_domain(tmp_path / "wrong")), world.open() as platform:
        refresh(platform, lambda: world.spark, person())
        [row] = aside(platform, chosen)
        assert (row.error, row.arrival, row.attempts) == ("paid_known", "sales/2017-01-01/a.jsonl", 1)
        with pytest.raises(QuarantineError, match=r"There is nothing to replay of silver\.sales"):
            replay_quarantined(platform, no_session, chosen, person())
        discard(platform, chosen, person())
        with pytest.raises(QuarantineError, match="a person discarded it"):
            replay_quarantined(platform, no_session, chosen, person())
        with pytest.raises(QuarantineError, match=r"There is nothing to replay of silver\.sales"):
            replay_quarantined(platform, no_session, one, person())
        recompute(platform, lambda: world.spark, (SILVER,), (date(2017, 1, 1),), person())
        assert aside(platform, chosen) == ()
    stricter = (("paid >= 0", "paid > 2"),)
    with importable(write_domain(tmp_path / "stricter", contracts=stricter)), world.open() as platform:
        replay_quarantined(platform, lambda: world.spark, one, person())
        # Also the one that somebody discarded: it breaks another rule of that name.
        assert sorted(row.attempts for row in aside(platform, chosen)) == [2, 2]
    with importable(write_domain(tmp_path / "right", contracts=(("paid >= 0", "paid > -9"),))):
        late = {"till": 3, "at": "2017-01-01T02:00:00Z", "paid": "0.00"}
        world.deliver_rows("sales", "2017-01-02", "b.jsonl", [late])
        with world.open() as platform:
            done = replay_quarantined(platform, lambda: world.spark, chosen, person())
            assert aside(platform, chosen) == ()
            assert not done.ingests, "a file that waits is not this person's to sign"
            assert [each.path for each in platform.ledger.arrivals(RAW)] == ["sales/2017-01-01/a.jsonl"]
        world.refresh()
        assert len(world.rows(SILVER)) == 3
        assert sum(row["paid"] for row in world.rows("gold.tills")) == -1


def test_a_share_of_broken_rows_beyond_the_contracts_limit_blocks_the_file_and_the_day(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """One refresh."""
    world = delivered(make_world(days=3, domains=PACKAGE))
    row = {"till": 8, "at": "2017-01-03T02:00:00Z", "paid": "1.00", "op": "U", "note": ""}
    world.deliver_rows("sales", "2017-01-03", "c.jsonl", [row, {**row, "till": 9, "paid": "-1.00"}])
    limit = "checks=Checks(most_aside_percent=40)"
    with importable(
        write_domain(
            tmp_path,
            silver=DROPPED,
            contracts=(
                (HEAD, "MORE = (" + COLUMNS.format(absent="", voided=f" {limit},")),
                ("Amount, Column", "Amount, Checks, Column"),
                ('rules=(Rule("paid_known"', f'{limit}, rules=(Rule("paid_known"'),
            ),
        )
    ):
        [ingest], [silver, *_] = (result := world.refresh()).ingests, result.steps
        [refused] = [each for each in ingest.arrivals if each.path == VOIDS]
        assert (refused.landed, refused.taken, refused.refused) == (3, 0, 0)
        assert "has 2 broken rows of 3, more than the 40 % that its contract takes" in str(refused.reason)
        assert "most often paid: not decimal(12,2)" in str(refused.reason)
        [finding] = silver.held[date(2017, 1, 3)]
        assert finding.message.startswith(
            f"{SILVER} on 2017-01-03: of 1 of 2 keys every row is in quarantine, more than"
        )
        assert "correct the deliveries or the rules (paid_known)" in finding.message
