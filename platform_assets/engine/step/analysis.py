"""Analyse contracts and transforms with Spark before any row is read, over empty tables.

Every expression that a contract has as text, and the result of every transform, is resolved as with rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType

from platform_assets.contracts import (
    DAY,
    Amount,
    AsOf,
    Catalogue,
    Contract,
    ContractError,
    Input,
    Reconciliation,
    Rule,
    Span,
)
from platform_assets.engine.catalogue import Mistake, refuse_mistakes
from platform_assets.engine.circuits import record_verdict, stopped
from platform_assets.engine.day_contents import computed_with
from platform_assets.engine.platform import Platform, transform_of
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.engine.state.reference_data import history_key, history_order
from platform_assets.engine.step.holds import failed_by
from platform_assets.engine.step.inputs import InputRows
from platform_assets.engine.step.proofs import refuse_jobs_of_its_own, refuse_what_cannot_repeat
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.circuit import TableVerdict
from platform_assets.planning.day_states import Stale
from platform_assets.records.code_version import Attempt
from platform_assets.settings import Settings
from platform_assets.spark.compare.profiles import rule_aggregates
from platform_assets.spark.compare.reconciliation import figures_by_key
from platform_assets.spark.raw.versions import keeps, with_verdict
from platform_assets.spark.session.configuration import software_of
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import TransformError, causes, first_line, users_code
from platform_assets.spark.tables.reading import no_rows
from platform_assets.spark.tables.scans import is_made_of_given_rows, not_repeatable, with_own_jobs
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets.spark.tables.staging import check_columns
from platform_assets.spark.windows import History, Windowed

_ANY_DAY = date(2000, 1, 1)


_NO_PATTERN = "PatternSyntaxException: "


class ExpressionError(TransformError):
    """A contract has an expression that Spark refuses.

    Args:
        field: name of the rule or the amount.
    """

    def __init__(self, what: str, table: str, field: str) -> None:
        super().__init__(what, "Correct the expression in the contract.")
        self.table = table
        self.field = field


def analysis_mistakes(
    catalogue: Catalogue, tables: Collection[str], spark: SparkSession, without: Collection[str] = ()
) -> Iterator[Mistake]:
    """Yield the mistakes that Spark's analyser finds in the contracts and the transforms of tables.

    Args:
        tables: tables to check; of raw ones, the condition of deletes.
        without: tables with known mistakes in their transforms, of which only the contracts are checked.
    """
    for contract in catalogue:
        if contract.name not in tables:
            continue
        package = catalogue.domain_of(contract.name).transforms
        sources = tuple(catalogue[read.table] for read in contract.inputs)
        for wrong in _contract_errors(spark, contract, sources):
            yield Mistake.of(wrong, package, table=contract.name)
        if contract.name in without or not contract.inputs:
            continue
        try:
            with users_code(contract.name):
                transform = transform_of(catalogue, contract)
        except PlatformError as error:
            yield Mistake.of(error, package, table=contract.name)
            continue
        histories = tuple(
            (history_key(catalogue, read.table), history_order(catalogue, read.table))
            if isinstance(read.window, AsOf)
            else ((), ())
            for read in contract.transform_inputs
        )
        for wrong in _transform_errors(spark, contract, sources[: len(histories)], histories, transform):
            yield Mistake.of(wrong, package, table=contract.name)


# What was found to be right is looked at once in a process, however many refreshes and days it computes.
@lru_cache(maxsize=1024)
def _contract_errors(
    spark: SparkSession, contract: Contract, sources: tuple[Contract, ...]
) -> tuple[PlatformError, ...]:
    """Return errors of conditions and reconciliations."""
    errors: list[PlatformError] = []
    if contract.void_condition:
        what = f"`voided` of {contract.name} is not a condition on its columns: {contract.voided}"
        with _noted(errors, contract, "voided", what):
            rows = _empty(spark, contract, is_raw=True).select(*contract.column_names)
            rows.where(contract.void_condition).schema  # noqa: B018
    if contract.quarantine_rules:
        _rule_errors(spark, contract, sources[0], errors)
    if contract.judging_rules:
        _judging_errors(spark, contract, errors)
    errors += _pattern_errors(spark, contract)
    for declared in contract.reconciles:
        read = next(read for read in contract.inputs if read.table == declared.upstream)
        source = next(source for source in sources if source.name == declared.upstream)
        _reconciliation_errors(spark, contract, declared, read, source, errors)
    return tuple(errors)


def _rule_errors(spark: SparkSession, contract: Contract, source: Contract, errors: list[PlatformError]) -> None:
    raw = _empty(spark, source, is_raw=True)
    for rule in contract.quarantine_rules:
        what = f"The rule {rule.name!r} of {contract.name} is no condition over {source.name}: {_shown(rule)}"
        with _noted(errors, contract, rule.name, what):  # the raw table's own condition is reported there
            with_verdict(raw, [rule], None).schema  # noqa: B018  over Spark Connect, this asks


def _judging_errors(spark: SparkSession, contract: Contract, errors: list[PlatformError]) -> None:
    rows, before = _empty(spark, contract), len(errors)
    for rule in contract.judging_rules:
        what = f"The rule {rule.name!r} of {contract.name} is not a condition on its columns: {_shown(rule)}"
        with _noted(errors, contract, rule.name, what):
            rows.groupBy(DAY).agg(*rule_aggregates([rule])).schema  # noqa: B018
    for rule in contract.judging_rules if len(errors) == before else ():
        if changing := not_repeatable(rows.select(keeps(rule))):
            named = ", ".join(changing)
            what = f"The rule {rule.name!r} of {contract.name} would not give the same result again: it uses {named}"
            errors.append(ExpressionError(f"{what}.", contract.name, rule.name))


def _pattern_errors(spark: SparkSession, contract: Contract) -> Iterator[PlatformError]:
    """Yield patterns that Java does not accept: the analyser does not check them, and the first row would fail."""
    for rule in contract.rules:
        pattern = rule.kind.text.partition(" RLIKE ")[2] if rule.kind.name == "matches" else ""
        try:
            if pattern:
                spark.sql(f"SELECT '' RLIKE {pattern}").collect()
        except (PySparkException, Py4JError) as error:
            why = next((each for each in causes(error) if _NO_PATTERN in each), "")
            if not why:
                raise
            what = f"The rule {rule.name!r} of {contract.name} has a pattern that Java does not know: {pattern}"
            said = why.rpartition(_NO_PATTERN)[2].partition("\n")[0]
            yield ExpressionError(f"{what}: {said}", contract.name, rule.name)


def _shown(rule: Rule) -> str:
    return f"{rule.kind.text} where {rule.where}" if rule.where.strip() else rule.kind.text


def _reconciliation_errors(
    spark: SparkSession,
    contract: Contract,
    declared: Reconciliation,
    read: Input,
    source: Contract,
    errors: list[PlatformError],
) -> None:
    ours, theirs = _empty(spark, contract), _empty(spark, source)
    given = theirs if read.window == Span(0, 0) else Windowed(theirs, read.window, [_ANY_DAY])
    before = len(errors)
    for amount in declared.amounts:
        for frame, side, expression in ((ours, "ours", amount.ours), (theirs, "theirs", amount.theirs)):
            whose = contract.name if side == "ours" else source.name
            what = (
                f"The amount {amount.name!r}, by which {contract.name} is reconciled with {source.name}, has a "
                f"`{side}` that is no aggregate over {whose}: {expression}"
            )
            with _noted(errors, contract, amount.name, what):
                type_ = frame.groupBy(DAY, *declared.by).agg(F.expr(expression)).schema.fields[-1].dataType
                if not (declared.allowed.is_exact or isinstance(type_, NumericType)):
                    errors.append(_without_tolerance(contract, declared, amount, expression, type_))
    if len(errors) == before:
        with _noted(errors, contract, "reconciles", f"{contract.name} cannot be reconciled with {source.name}"):
            figures_by_key(ours, given, declared, [_ANY_DAY]).schema  # noqa: B018


def _without_tolerance(
    contract: Contract, declared: Reconciliation, amount: Amount, expression: str, type_: DataType
) -> ContractError:
    return ContractError(
        f"The amount {amount.name!r}, by which {contract.name} is reconciled with {declared.upstream}, is no number: "
        f"{expression} is a {type_.simpleString()}, and the tolerance {declared.tolerance!r} is about numbers.",
        "Compare it in a reconciliation of its own without an amount or a percentage in `tolerance`; a number of keys "
        "is possible.",
        table=contract.name,
        field=amount.name,
    )


@contextmanager
def _noted(errors: list[PlatformError], contract: Contract, field: str, what: str) -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        errors.append(ExpressionError(f"{what}: {first_line(error)}", contract.name, field))
        errors[-1].__cause__ = error


@lru_cache(maxsize=1024)
def _transform_errors(
    spark: SparkSession,
    contract: Contract,
    sources: tuple[Contract, ...],
    histories: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...],
    transform: Callable[..., DataFrame],
) -> tuple[PlatformError, ...]:
    given = {
        read.parameter: _input(spark, read, source, *history)
        for read, source, history in zip(contract.transform_inputs, sources, histories, strict=True)
    }
    try:
        with users_code(contract.name):
            frame, own_jobs = with_own_jobs(spark, lambda: transform(**given))
            check_columns(contract.name, frame, spark_schema(contract))
        refuse_what_cannot_repeat(contract, frame)
        if is_made_of_given_rows(frame):  # else to look into another table takes jobs, and the step says which it is
            refuse_jobs_of_its_own(contract, own_jobs)
    except PlatformError as error:
        return (error,)
    return ()


def _input(
    spark: SparkSession, read: Input, source: Contract, key: tuple[str, ...], order: tuple[str, ...]
) -> InputRows:
    frame = _empty(spark, source)
    match read.window:
        case Span(0, 0):
            return frame
        case AsOf():
            return History(frame, key, order)
        case _:
            return Windowed(frame, read.window, [_ANY_DAY])


def _empty(spark: SparkSession, contract: Contract, *, is_raw: bool = False) -> DataFrame:
    return no_rows(spark, raw_schema(contract) if is_raw else spark_schema(contract))


def analysed(platform: Platform, tables: Collection[str], spark: SparkOnDemand, run: str = "") -> SparkOnDemand:
    """Return the session once its analyser has found no mistakes in some tables.

    So a command that computes nothing starts no session, and others learn every mistake before loading anything.
    Mistakes of a table that a circuit stops do not stop other tables: a try of the circuit finds them again.

    Args:
        tables: tables to check, with their raw ones.
        run: run that a mistake fails, for circuits; empty if none is to count it.
    """

    def session() -> SparkSession:
        given = spark()
        raw = platform.catalogue.with_inputs(tables)  # deliveries for the tables are judged by conditions, too
        software = software_of(given)
        now = {
            contract.name: _verdict_on(platform, contract, software)
            for contract in platform.catalogue
            if contract.name in (tables if contract.inputs else raw) and (contract.inputs or contract.voided)
        }
        right = _found_right(_file(platform))
        to_look_at = [table for table, verdict in now.items() if right.get(table) != verdict]
        if to_look_at:
            mistakes = list(analysis_mistakes(platform.catalogue, to_look_at, given))
            halted = stopped(platform) if mistakes else {}
            left = [mistake for mistake in mistakes if mistake.table not in halted]
            if run and left:
                _count(platform, run, left)
            refuse_mistakes(left)
            _remember(platform, {table: now[table] for table in to_look_at if now[table] and table not in halted})
        return given

    return session


def _count(platform: Platform, run: str, mistakes: Collection[Mistake]) -> None:
    """Record for circuits that the code of tables failed, at the newest day that it would have computed."""
    failed = {mistake.table: failed_by(mistake.error) for mistake in mistakes if mistake.error}
    snapshot = LakeSnapshot.now(platform)
    for table in platform.code_versions.keys() & failed.keys():
        states = states_around(snapshot, platform.catalogue[table], snapshot.calendar.days())[1]
        stale = {day: state.fingerprint for day, state in states.items() if isinstance(state, Stale)}
        if stale and "code" in failed[table]:
            attempt = Attempt(stale[max(stale)], platform.version(table))
            its = TableVerdict(table=table, at=datetime.now(UTC), run=run, day=max(stale), attempt=attempt)
            record_verdict(platform, replace(its, failed=failed[table]))


def _verdict_on(platform: Platform, contract: Contract, software: Mapping[str, str]) -> str:
    """Return what a table's analysis depends on; empty if unknown, because its code version is set by hand."""
    if contract.code_version is not None or platform.catalogue.domain_of(contract.name).code_version is not None:
        return ""
    sources = (platform.catalogue[read.table] for read in contract.inputs)
    # Sets have no order that two processes share; no analysis asks which days are closed.
    declared = [repr(replace(part, closed_days=frozenset())) for part in (contract, *sources)]
    known = [*declared, platform.code_versions.get(contract.name), sorted(computed_with(software).items())]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def analysed_file(settings: Settings) -> Path:
    """Return the file that says which contracts and transforms were found to be right."""
    return settings.state / "analysed.json"


def _file(platform: Platform) -> Location:
    return located(analysed_file(platform.settings))


def _found_right(file: Location) -> dict[str, str]:
    with suppress(OSError, LakeError, ValueError):
        kept = json.loads(file.read() or b"{}")
        if isinstance(kept, dict):
            return kept
    return {}


def _remember(platform: Platform, found: Mapping[str, str]) -> None:
    """Cache the analysis of existing tables; of two processes at once, one may have to analyse again."""
    file = _file(platform)
    kept = {table: verdict for table, verdict in _found_right(file).items() if table in platform.catalogue.names}
    with suppress(OSError, LakeError):
        file.replace(json.dumps(kept | dict(found), sort_keys=True, indent=1).encode())
