"""Nothing bad becomes visible unsaid: a catalogue of deliveries that are wrong, and what becomes of each.

One lake of thirty clean days; each case delivers the thirty-first, spoiled in one way, to a copy of it. What no gate
catches is in the catalogue as well. `docs/bad-data.md` shows all of it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

import pytest

from platform_assets.contracts import UnknownTableError
from platform_assets.engine.refresh import RefreshResult
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.settings import project_root
from platform_assets_tests.support import orders as domain
from platform_assets_tests.support.domains.transforms import gold, silver
from platform_assets_tests.support.orders import (
    CLEAN,
    ITEMS,
    LINES,
    TODAY,
    Spoil,
    Transform,
    also,
    broken,
    clean,
    day,
    deliver,
    json_lines,
    other,
    path,
    readers_see,
    rows_right,
    rows_shown,
    shifted,
    some,
    sums,
    sums_shown,
    text,
    times,
    written,
)
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World


@dataclass(frozen=True)
class Case:
    """One kind of bad data.

    Args:
        name: for the catalogue.
        spoil: returns the delivery of the day, from clean rows: other rows, the bytes of its file, or several files.
        gates: what becomes of it, in alphabetical order.
        readers: which rows of the day readers see then: `all` right ones, `some`, `none` or `wrong` ones; of silver and
            gold, where that is not the same. Wrong ones of other days count, too.
        said: a part of what people are told; empty where nothing is said.
        why: of what nothing is said, why that is right, or what would tell.
        always: whether it is no proof, but runs with every change.
        code: what is in place of a transform.
    """

    name: str
    spoil: Spoil
    gates: str
    readers: str
    said: str = ""
    why: str = ""
    always: bool = False
    code: tuple[ModuleType, str, Transform] | None = None


# A table: a case in two lines or three.
# fmt: off
CASES: tuple[Case, ...] = (
    # files
    Case("an empty file", lambda rows: b"", "file refused", "none", "is empty: not even a header line"),
    Case("a header and no rows", lambda rows: text([]).encode(), "silver held by volume", "none",
         "too few rows: 0 rows; 18 to 22 rows are usual"),
    Case("a delivery cut off in the middle of a row", written(lambda found: found[: len(found) // 2]),
         "rows refused, silver held by volume", "none", "broken line: not 10 fields"),
    Case("another delimiter", written(lambda found: found.replace(",", ";")), "file refused", "none",
         "looks separated by semicolons instead of commas", always=True),
    Case("another encoding, Latin-1", written(lambda found: found.encode("latin-1")), "file refused", "none",
         "is not UTF-8 text: line 2 has the byte 0xeb"),
    Case("another encoding, UTF-16", written(lambda found: found.encode("utf-16")), "file refused", "none",
         "is UTF-16 text; write it as UTF-8"),
    Case("a byte order mark", written(lambda found: found.encode("utf-8-sig")), "", "all",
         why="the mark is no part of the first column's name"),
    Case("gzip cut short", lambda rows: {path("a.csv.gz"): gzip.compress(text(rows).encode())[:-30]}, "file refused",
         "none", "is gzip that was cut short; deliver it whole"),
    Case("an ending that no format has", lambda rows: {path("a.txt"): text(rows).encode()}, "not taken", "none",
         "has the unknown ending '.txt'"),
    Case("a folder that is no date", lambda rows: {"orders/31-01-2017/a.csv": rows}, "not taken", "none",
         "is not a folder named after an arrival date"),
    Case("no header", written(lambda found: found.partition("\n")[2]), "file refused", "none",
         "its first line was taken for the header"),
    Case("a second header in another order",
         lambda rows: (text(rows[:9]) + text([dict(reversed(row.items())) for row in rows[9:]])).encode(),
         "file refused", "none", "has another header in row 11"),
    Case("a missing column", lambda rows: [{name: row[name] for name in row if name != "price"} for row in rows],
         "file refused", "none", "lacks the column price"),
    Case("a renamed column", written(lambda found: found.replace("price", "unit_price", 1)), "file refused", "none",
         "it has unit_price, which the contract does not declare"),
    Case("an extra column", some(channel="web"), "noted", "all", "extra column channel kept in _rescued"),
    Case("columns in another order", lambda rows: [dict(reversed(row.items())) for row in rows], "", "all",
         why="columns are taken by their names"),
    Case("a file that was taken is replaced",
         lambda rows: {path("a.csv"): rows, path("a.csv", CLEAN): some(price="9.99")(clean(CLEAN))}, "not taken", "all",
         "was replaced: 1704 bytes with sha256"),
    Case("the same file again under another name", lambda rows: {path("a.csv"): rows, path("b.csv"): rows}, "noted",
         "all", "has the same content as orders/2017-01-31/a.csv"),
    Case("yesterday's file again in place of today's", lambda rows: clean(CLEAN), "noted, silver held by volume",
         "none", "has the same content as orders/2017-01-30/a.csv"),
    Case("yesterday's rows again, in an older version",
         also(CLEAN, price="1.11", updated_at=lambda row: row["ordered_at"]), "", "all",
         why="the newest version of a key counts, by `updated_at`"),
    # rows
    Case("text in place of a number", some(2, price="n/a"), "rows refused", "some", "price: not decimal(12,2): n/a"),
    Case("a decimal comma", some(price=lambda row: row["price"].replace(".", ",")), "file refused", "none",
         "price: not decimal(12,2): 4,00"),
    Case("more digits than the column has", some(2, price="4.005"), "rows refused", "some",
         "price: not decimal(12,2): 4.005"),
    Case("a number too large for its type", some(1, quantity=3_000_000_000), "rows refused", "some",
         "quantity: not int: 3000000000"),
    Case("dates of another format", some(ordered_at=lambda row: f"31/01/2017 {row['ordered_at'][11:13]}:00"),
         "file refused", "none", "ordered_at: not timestamp: 31/01/2017 08:00"),
    Case("an abbreviated time zone", some(4, ordered_at=lambda row: row["ordered_at"].replace("Z", " CST")),
         "rows refused, silver held by volume", "none", "ordered_at: neither Z, UTC, GMT nor an offset after the time"),
    Case("quotes that nothing closes", written(lambda found: found.replace("for Zoë", '"for Zoë')), "rows refused",
         "some", "field 7 opens a quote that is never closed"),
    Case("a line of totals at the end", written(lambda found: found + "TOTAL,,,40,110.00,EUR,,,,\n"), "rows refused",
         "all", "order_id: not long: TOTAL"),
    Case("a field twice in a JSON object",
         lambda rows: {path("a.jsonl"): json_lines(rows).replace('{"order', '{"price": "1", "order', 1).encode()},
         "rows refused", "some", "broken line: names a field twice"),
    Case("two columns swapped, of other types",
         some(quantity=lambda row: row["price"], price=lambda row: row["quantity"]), "file refused", "none",
         "has no row that can be taken: all 20 are refused"),
    Case("two columns swapped, of one type", some(store=lambda row: row["item"], item=lambda row: row["store"]),
         "silver held by contract, silver held by volume", "none",
         "of 20 of 20 keys every row is in quarantine, more than 50 %"),
    Case("two moments swapped",
         some(ordered_at=lambda row: row["updated_at"], updated_at=lambda row: row["ordered_at"]),
         "silver held by contract, silver held by volume", "none",
         "of 20 of 20 keys every row is in quarantine, more than 50 %"),
    Case("no key", some(2, order_id=""), "rows refused", "some", "order_id: no value"),
    Case("no event time", some(2, ordered_at=""), "rows refused", "some", "ordered_at: no value"),
    Case("nulls in a few rows", some(2, store=""), "rows in quarantine", "some", "store_given"),
    Case("nulls in a whole column", some(price=""), "silver held by contract, silver held by volume", "none",
         "of 20 of 20 keys every row is in quarantine, more than 50 %"),
    # values
    Case("negative amounts", some(2, price=lambda row: f"-{row['price']}"), "rows in quarantine", "some",
         "price_in_range"),
    Case("a placeholder in place of a number", some(2, quantity=-9999), "rows in quarantine", "some",
         "quantity_in_range"),
    Case("values out of range", some(2, quantity=5000), "rows in quarantine", "some", "quantity_in_range"),
    Case("a code with a blank behind it", some(2, item="tea-0001 "), "rows in quarantine", "some", "item_code"),
    Case("another spelling of a known value", some(2, store="North"), "rows in quarantine", "some", "store_known"),
    Case("a dangling reference", some(5, item="soap-0001"), "silver held by rules", "none",
         "break the rule 'item_known' ((item) exists in silver.items as of the day)"),
    Case("texts that are too long", some(2, note="x" * 60), "silver warned by rules", "wrong/all",
         "break the rule 'short_note' (char_length(note) BETWEEN 0 AND 40)"),
    Case("another currency", some(currency="USD"), "silver held by contract, silver held by volume", "none",
         "of 20 of 20 keys every row is in quarantine, more than 50 %"),
    Case("another unit, a hundred times as large", some(price=times(100)),
         "silver held by contract, silver held by volume", "none",
         "of 11 of 20 keys every row is in quarantine, more than 50 %"),
    Case("another unit, ten times as large", some(price=times(10)), "gold held by rules", "wrong/none",
         "break the rule 'plausible' (revenue <= 20 * units)"),
    Case("another time zone, five hours later", shifted(5), "silver held by rules", "none",
         "break the rule 'open' (hour(ordered_at) BETWEEN 8 AND 19); at most 5 % may"),
    Case("days far in the future", some(2, ordered_at="2019-01-31T10:00:00Z", updated_at="2019-01-31T10:05:00Z"),
         "rows wait in the late queue", "some", "2 rows wait in the late queue"),
    Case("days of 1970", some(2, ordered_at="1970-01-01T00:00:00Z"), "rows wait in the late queue", "some",
         "2 rows wait in the late queue"),
    Case("a clean delivery", list, "", "all", why="for comparison"),
    # keys and volume
    Case("duplicates within the day", lambda rows: rows + rows[:7], "", "all", why="one row of a key counts"),
    Case("duplicates of yesterday's rows", also(CLEAN), "", "all", why="one row of a key counts, whenever it came"),
    Case("duplicates under new keys",
         lambda rows: rows + [row | {"order_id": row["order_id"] + 500} for row in rows[:2]], "silver held by rules",
         "none", "break the rule 'ordered_once' (unique (store, item, quantity, price, ordered_at))"),
    Case("two contents of one version", lambda rows: [*rows, rows[0] | {"price": "5.00"}], "silver held by contract",
         "none", "1 key with rivals: versions of the same updated_at, arrival date and another content"),
    Case("a doubled delivery", lambda rows: rows + [row | {"order_id": row["order_id"] + 500} for row in rows],
         "silver held by rules, silver held by volume", "none", "too many rows: 40 rows; 18 to 22 rows are usual"),
    Case("a halved delivery", lambda rows: rows[: LINES // 2], "silver held by volume", "none",
         "too few rows: 10 rows; 18 to 22 rows are usual", always=True),
    Case("the rows of a store are missing", lambda rows: [row for row in rows if row["store"] != "west"],
         "silver held by volume", "none", "too few rows: 15 rows; 18 to 22 rows are usual"),
    Case("yesterday's keys for today's rows", some(order_id=lambda row: row["order_id"] - 1000),
         "silver held by conservation, silver held by volume", "none",
         "records moved between this day and 2017-01-30, which is held", always=True),
    Case("a flood of voids", also(CLEAN, 15, voided="true", updated_at=f"{day(TODAY)}T07:00:00Z"),
         "silver held by volume", "all", "silver.orders on 2017-01-30: too few rows: 5 rows"),
    Case("a flood of late rows, within the window", also(20, copies=3), "silver held by rules, silver held by volume",
         "all", "silver.orders on 2017-01-20: too many rows: 60 rows"),
    Case("a flood of late rows, beyond the window", also(5, copies=3), "rows wait in the late queue", "all",
         "60 rows wait in the late queue"),
    Case("a correction of a settled day", also(14, 1, price="20.00", updated_at=f"{day(TODAY)}T07:00:00Z"),
         "gold held by settled", "wrong/all", "store north: revenue 46.00 became 62.00 (+16.00); at most 5 % allowed"),
    # code
    Case("code that loses rows", list, "silver held by conservation, silver held by volume", "none",
         "14 rows staged, but 20 keys that stay; first lost: order_id 31002", always=True,
         code=broken(silver, "orders", lambda rows: rows.where("quantity < 3"))),
    Case("code that repeats rows", list, "silver held by conservation, silver held by contract, silver held by rules",
         "none", "1 key (order_id) with more than one row",
         code=broken(silver, "orders", lambda rows: rows.unionByName(rows.limit(1)))),
    Case("code that leaves a column empty", list, "gold held by contract, gold held by rules", "all/none",
         "4 rows without units, which may not be null; first store east",
         code=broken(gold, "store_sales", other("units", "CAST(NULL AS long)"))),
    Case("gold that is not what silver is", list, "gold held by reconciliation", "all/none",
         "in all revenue 214.00, not 210.00 (+4.00); first store east",
         code=broken(gold, "store_sales", other("revenue", "CAST(revenue + 1 AS decimal(18,2))"))),
    # what no gate can tell
    Case("prices that drift by a tenth", some(price=times("1.1")), "", "wrong",
         why="no gate knows means: a [comparison](reconciling.md) with another side, or a narrow rule on gold"),
    Case("another time zone, one hour later", shifted(1), "", "wrong/all",
         why="a smaller tolerance of the rule `open`: one row in twenty is out of hours"),
    Case("a single dangling reference, as tolerated", some(1, item="soap-0001"), "", "wrong/all",
         why="a smaller tolerance: the check *rules* says that one row is broken as tolerated, and warns of nothing"),
    Case("a store missing, and its rows in another",
         some(store=lambda row: "east" if row["store"] == "west" else row["store"]), "", "wrong",
         why="no gate counts rows by store: a [comparison](reconciling.md) with another side"),
    Case("one key of yesterday for a row of today", some(1, order_id=lambda row: row["order_id"] - 1000), "", "wrong",
         why="nothing: it looks like an order that moved; `why` names the arrival"),
    Case("texts in a wrong encoding, written as UTF-8", some(1, note="for ZoÃ«"), "", "wrong/all",
         why="a rule with a pattern for the column"),
    Case("one value in all rows", some(quantity=1), "", "wrong",
         why="no gate knows how values are usually spread: a [comparison](reconciling.md) with another side"),
)
# fmt: on


def thirty_days(lakes: Lakes) -> World:
    """Return a lake of thirty clean days."""
    world = lakes.new(days=TODAY, domains=domain.__name__)
    world.deliver_rows("items", str(day(1)), "i.jsonl", [{"item": item, "since": str(day(1))} for item in ITEMS])
    for number in range(1, CLEAN + 1):
        world.deliver("orders", str(day(number)), "a.csv", text(clean(number)))
    assert not list(findings(world.refresh()))
    return world


def findings(result: RefreshResult) -> Iterator[tuple[str, str]]:
    """Yield what became of a delivery and its days, each with what is said of it."""
    for ingest in result.ingests:
        for arrival in ingest.arrivals:
            if arrival.reason:
                yield "file refused", arrival.reason
            elif arrival.refused:
                yield "rows refused", ""
            if arrival.late:
                contract = next(table for table in domain.TABLES if table.name == ingest.table)
                checked, _ = delivery_checks(contract, [arrival], [arrival.arrival_date])[arrival.arrival_date]
                yield "rows wait in the late queue", checked.sentence
            yield from (("noted", note) for note in arrival.notes if not arrival.reason)  # which says it
        yield from (("not taken", problem.what) for problem in (*ingest.problems, *ingest.growing))
    for step in result.steps:
        layer = step.table.partition(".")[0]
        if step.newly_quarantined:
            yield "rows in quarantine", ""
        for content in step.published.values():
            yield from ((f"{layer} warned by {each.gate}", each.found) for each in content.warnings)
        for found in step.held.values():
            yield from ((f"{layer} held by {each.check}", each.message) for each in found if each.blocks)


def observed(world: World, result: RefreshResult) -> tuple[str, str, str]:
    """Return what became of a delivery, which rows readers see, and all that is said."""
    found = list(findings(result))
    said = [text for _, text in found]
    for name in ("refused.orders", "quarantine.orders"):
        with suppress(UnknownTableError):  # nothing was ever set aside
            said += [str(row["_reason"]) for row in world.rows(name)]
    shown, right = rows_shown(world), rows_right()
    good = {
        at: {key: row for key, row in rows.items() if right.get(at, {}).get(key) == row} for at, rows in shown.items()
    }
    of_silver = readers_see(shown, right, good)
    of_gold = readers_see(sums_shown(world), sums(right), sums(good))
    seen = of_silver if of_silver == of_gold else f"{of_silver}/{of_gold}"
    return ", ".join(sorted({what for what, _ in found})), seen, " | ".join(dict.fromkeys(filter(None, said)))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=() if case.always else pytest.mark.proof) for case in CASES]
)
def test_what_becomes_of_bad_data(case: Case, prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first makes the thirty days."""
    world = prepared(thirty_days)
    if case.code:
        monkeypatch.setattr(*case.code)
    deliver(world, case.spoil(clean(TODAY)))
    gates, readers, said = observed(world, world.refresh())
    assert (gates, readers) == (case.gates, case.readers), said
    assert case.said in said
    assert bool(case.said) == bool(said), said


PAGE = project_root() / "docs" / "bad-data.md"
SEE = {
    "all": "right rows",
    "some": "other rows",
    "none": "nothing",
    "wrong": "wrong rows",
}


def seen(case: Case) -> str:
    of_silver, _, of_gold = case.readers.partition("/")
    return f"silver: {SEE[of_silver]}; gold: {SEE[of_gold]}" if of_gold else SEE[of_silver]


def page_lists() -> Iterator[str]:
    """Yield the lists of the page: cases that are caught, by outcome; that are right; that pass without a message."""
    caught: dict[str, list[str]] = {}
    for case in CASES:
        if case.said:
            outcome = f"**{case.gates.replace(', ', '; ').capitalize()}. Readers see {seen(case)}:**"
            caught.setdefault(outcome, []).append(f"- {case.name}: `{case.said}`\n")
    for outcome, kinds in caught.items():
        yield f"{outcome}\n\n{''.join(kinds)}"
    yield "".join(f"- {case.name}: {case.why}\n" for case in CASES if not case.said and case.readers == "all")
    yield "".join(f"- {case.name}: {case.why}\n" for case in CASES if not case.said and case.readers != "all")


def test_every_kind_is_told_or_right_or_listed_as_unnoticed() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(bool(case.said) for case in CASES) >= 40
    for case in CASES:
        assert bool(case.gates) == bool(case.said) != bool(case.why), case.name
    assert {case.name for case in CASES if case.said and "wrong" in case.readers} == {
        "texts that are too long",
        "another unit, ten times as large",
        "a correction of a settled day",
    }, "the page says why"


def test_the_page_shows_the_catalogue() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for shown in page_lists():
        assert shown in text, shown
