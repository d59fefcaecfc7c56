"""Run tests of tables: deliver, ingest and compute in a lake that is deleted afterwards, and compare rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr
from pyspark.sql import SparkSession

from platform_assets.contracts import DAY, Catalogue, Contract, LandingFiles
from platform_assets.contracts.rules import quarantine_table, with_quarantine
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.step.analysis import analysed_file
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import NeverPublishedError
from platform_assets.operations.opening import open_platform
from platform_assets.operations.readers import read
from platform_assets.operations.table_tests.files import RULE, Given, Row, Rows, TableTest, TableTestError
from platform_assets.planning.arrivals import comes_with, delays
from platform_assets.planning.selection import Request
from platform_assets.progress import OnProgress, no_progress
from platform_assets.settings import Settings
from platform_assets.sources.source import Source
from platform_assets.spark.session.on_demand import SparkOnDemand

_FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Planning and starting tasks is all that they cost; results are the same."""
_ANALYSED = "analysed-by-tests.json"
"""In the state folder: which contracts and transforms earlier tests found to be right, as `analysed.json` is for runs,
whose tables may have other sources."""


@dataclass(frozen=True)
class _Outcome:
    """Result of a test's deliveries: rows of tables and quarantines, held days, refusals and failures.

    Args:
        blocked: why days were not computed, such as a held input.
    """

    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    held: Mapping[tuple[str, date], tuple[str, str]]
    refused: Sequence[str]
    blocked: Mapping[tuple[str, date], str] = field(default_factory=dict)


@dataclass
class TableTests:
    """Run tests that share a session; tests with equal deliveries are computed together."""

    settings: Settings
    spark: SparkOnDemand
    catalogue: Catalogue
    progress: OnProgress = no_progress
    tests: list[TableTest] = field(default_factory=list)
    _outcomes: dict[str, _Outcome] = field(default_factory=dict)

    def differences(self, test: TableTest) -> list[str]:
        """Run a test and return the differences from the expected rows, a line each.

        Raises:
            TableTestError: a value does not fit its column.
        """
        key = repr(test.given)
        if key not in self._outcomes:
            self._outcomes[key] = self._compute([test, *(each for each in self.tests if repr(each.given) == key)])
        return list(_differences(test, self._outcomes[key], self.catalogue))

    def _compute(self, tests: Sequence[TableTest]) -> _Outcome:
        days = sorted(days_given(tests[0].given, self.catalogue).union(*(test.days for test in tests)))
        wanted: dict[str, frozenset[date]] = {}
        for test in tests:
            wanted[test.table] = wanted.get(test.table, frozenset()) | test.days
        with TemporaryDirectory(prefix="platform-assets-test-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            own = {
                "state": folder,
                "state_mode": "700",
                "lake": str(folder / "lake"),
                "lake_mode": "",
                "landing": str(folder / "landing"),
                "ledger_url": SecretStr(f"sqlite:///{folder / 'ledger.db'}"),
                "calendar_first": days[0],
                "calendar_last": days[-1],
                "today": days[-1] + timedelta(max(delays(self.catalogue).values())),
                "settle_s": 0,
            }
            settings = self.settings.model_copy(update=own)
            _copy(self.settings.state / _ANALYSED, analysed_file(settings))
            catalogue = with_deliveries(self.catalogue)
            _deliver(settings, tests[0].given, catalogue)
            request = Request(tables=frozenset(wanted), by_table=wanted, by_person=True)
            author = Author("test", "a test of tables")
            try:
                with open_platform(settings) as opened:
                    platform = replace(opened, catalogue=catalogue)
                    done = refresh(platform, self._session, author, self.progress, request=request)
                    _copy(analysed_file(settings), self.settings.state / _ANALYSED)
                    return _outcome(platform, done, wanted)
            except PlatformError as error:  # the tests fail by it, and others go on
                return _Outcome({}, {}, (*error.lines, error.todo))

    def _session(self) -> SparkSession:
        session = self.spark()
        for name, value in _FEW_ROWS.items():
            session.conf.set(name, self.settings.spark_conf.get(name, value))
        return session


def _copy(file: Path, to: Path) -> None:
    with suppress(OSError):  # without it, all is looked at again
        to.write_bytes(file.read_bytes())


def with_deliveries(catalogue: Catalogue) -> Catalogue:
    """Return the tables with landing files instead of sources: a test reads no database."""
    if not any(isinstance(contract.source, Source) for contract in catalogue):
        return catalogue
    names = [each.name for each in fields(LandingFiles)]
    domains = []
    for domain in catalogue.domains:
        tables = (
            replace(contract, source=LandingFiles(**{name: getattr(contract.source, name) for name in names}))
            if isinstance(contract.source, Source)
            else contract
            for contract in domain.tables
        )
        domains.append(replace(domain, tables=tuple(tables)))
    return Catalogue.of(domains)


def days_given(given: Given, catalogue: Catalogue) -> set[date]:
    """Return the days of arrivals, and those of events written in ISO 8601."""
    days: set[date] = set()
    for table, deliveries in given.items():
        days |= deliveries.keys()
        for row in (row for rows in deliveries.values() if not isinstance(rows, Path) for row in rows):
            with suppress(ValueError):
                days.add(_day_of(str(row.values.get(str(catalogue[table].event_time))), catalogue[table]))
    return days


def _day_of(text: str, contract: Contract) -> date:
    if contract.day_zone is None:
        return date.fromisoformat(text[:10])
    at, zone = datetime.fromisoformat(text), contract.column(str(contract.event_time)).zone
    return at.replace(tzinfo=at.tzinfo or ZoneInfo(zone or "UTC")).astimezone(ZoneInfo(contract.day_zone)).date()


def as_delivered(contract: Contract, rows: Rows) -> str:
    """Return rows as JSON lines, or in the document and paths that files of their source use."""
    assert contract.source is not None
    texts = [json.dumps(_placed(contract, row.values)) for row in rows]
    if not contract.source.records:
        return "".join(f"{text}\n" for text in texts)
    document = f"[{', '.join(texts)}]"
    for name in reversed(contract.source.records):
        document = f"{{{json.dumps(name)}: {document}}}"
    return document


def _placed(contract: Contract, values: Mapping[str, str | None]) -> Any:
    root: dict[str | int, Any] = {}
    places = {name: contract.column(name).path or (name,) for name in values}
    for name in sorted(places, key=lambda name: len(places[name])):
        *above, last = places[name]
        place = root
        for step in above:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[last] = values[name]
    return _with_lists(root)


def _with_lists(value: Any) -> Any:
    """Return mappings with numbers for names as lists."""
    if not isinstance(value, dict):
        return value
    inside = {step: _with_lists(each) for step, each in value.items()}
    numbers = [step for step in inside if isinstance(step, int)]
    return [inside.get(n) for n in range(max(numbers) + 1)] if numbers else inside


def _deliver(settings: Settings, given: Given, catalogue: Catalogue) -> None:
    """Land the deliveries; other days get an empty file, or the snapshot before."""
    for contract in catalogue:
        if not (source := contract.source):
            continue
        deliveries = given.get(contract.name, {})
        before: Rows | Path = ()
        dates = {comes_with(contract, day) for day in settings.calendar()} if contract.delivers != "on change" else ()
        for day in sorted({*deliveries, *dates}):
            rows = before = deliveries.get(day, before if source.replaces == "table" else ())
            folder = settings.landing_folder / source.folder / str(day)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / (rows.name if isinstance(rows, Path) else f"{contract.name}.jsonl")
            if isinstance(rows, Path):
                shutil.copyfile(rows, file)
            else:
                file.write_text(as_delivered(contract, rows), encoding="utf-8")
            if source.complete:
                (folder / (f"{file.name}{source.complete}" if source.marks_files else source.complete)).touch()


def _outcome(platform: Platform, done: RefreshResult, tables: Mapping[str, object]) -> _Outcome:
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in (part for tested in tables for part in with_quarantine(tested)):
        rows[table] = []
        with suppress(NeverPublishedError):
            rows[table] = read(table, settings=platform.settings, declared=(table,)).to_pylist()
        if table not in tables:
            rows[table] = [json.loads(row["_payload"]) | {RULE: row["_reason"], DAY: row[DAY]} for row in rows[table]]
    refused = [
        f"{each.path}: {each.reason or f'{each.refused} of {each.landed} rows are refused, {each.late} are late'}"
        for ingest in done.ingests
        for each in ingest.arrivals
        if each.reason or each.refused or each.late
    ]
    refused += [str(problem) for ingest in done.ingests for problem in ingest.problems]
    held = {(hold.table, hold.day): (hold.gate, hold.reason) for hold in platform.ledger.holds()}
    blocked = {(step.table, day): reason for step in done.steps for day, reason in step.blocked.items()}
    return _Outcome(rows, held, refused, blocked)


def _differences(test: TableTest, outcome: _Outcome, catalogue: Catalogue) -> Iterator[str]:
    yield from outcome.refused
    if test.table not in outcome.rows:
        return
    contract = catalogue[test.table]
    for day in sorted({*test.held, *(day for table, day in outcome.held if table == test.table)}):
        wanted, (check, reason) = test.held.get(day), outcome.held.get((test.table, day), ("", ""))
        if wanted is None:
            yield f"{day} is held by {check}: {reason}"
        elif not check or wanted not in ("", check):
            yield f"{day} is {f'held by {check}' if check else 'published'}, expected: held by {wanted or 'a check'}"
    types = {column.name: column.type for column in contract.columns} | {DAY: "date"}
    for day, rows in sorted(test.expect.items()):
        if why := outcome.blocked.get((test.table, day)):  # so it has no rows, which may be what is expected
            yield f"{day} was not computed: {why}"
        found = [row for row in outcome.rows[test.table] if row[DAY] == day]
        yield from _compared(test.file, str(day), rows, found, types, contract.key)
    if test.quarantined is None:
        return
    aside = outcome.rows[quarantine_table(test.table)]
    types |= {column.name: column.type for read in contract.inputs for column in catalogue[read.table].columns}
    for day in sorted({*test.quarantined, *(row[DAY] for row in aside)}):
        found = [
            {name: _value(None if value is None else str(value), types.get(name, "")) for name, value in row.items()}
            for row in aside
            if row[DAY] == day
        ]
        rows = test.quarantined.get(day, ())
        yield from _compared(test.file, f"quarantine of {day}", rows, found, types, contract.key)


def _compared(
    file: Path, where: str, rows: Rows, found: Sequence[Mapping[str, Any]], types: Mapping[str, str], key: Sequence[str]
) -> Iterator[str]:
    """Yield differences between rows of a day: by column if the key matches rows, else whole rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row.values)) or [
        name for name in types if name != DAY
    ]
    left = [{name: row.get(name) for name in columns} for row in found]
    differing: list[tuple[Row, dict[str, Any]]] = []
    for source in rows:
        row = {name: _typed(file, source, name, types.get(name, "")) for name in columns}
        if row in left:
            left.remove(row)
        else:
            differing.append((source, row))
    for source, row in differing:
        same = [each for each in left if all(name in row and each[name] == row[name] for name in key)] if key else []
        if not same:
            yield f"{where} missing: {_shown(row)} ({source.place})"
            continue
        left.remove(same[0])
        named = _shown({name: row[name] for name in key})
        for name, value in row.items():
            if value != same[0][name]:
                yield f"{where} {named}: {name} is {_cell(same[0][name])}, expected {_cell(value)} ({source.place})"
    yield from (f"{where} unexpected: {_shown(row)}" for row in left)


def _typed(file: Path, row: Row, name: str, type_: str) -> Any:
    try:
        return _value(row.values.get(name), type_)
    except (ValueError, InvalidOperation) as error:
        what = f"{file}, {row.place}: {name} is {type_}, and {row.values[name]!r} is not."
        raise TableTestError(what, f"Write a value of type {type_}.") from error


def _value(text: str | None, type_: str) -> Any:
    """Return a value as Python has it; raises ValueError for text that is not of the type."""
    if text is None:
        return None
    match type_:
        case "int" | "long":
            return int(text)
        case "double":
            return float(text)
        case "boolean":
            return bool(("false", "true").index(text.lower()))
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=moment.tzinfo or UTC)
        case _:
            return Decimal(text) if type_.startswith("decimal") else text


def _shown(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_cell(value)}" for name, value in row.items())


def _cell(value: Any) -> str:
    return "null" if value is None else str(value)
