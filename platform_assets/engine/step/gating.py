"""Judge staged days by every check before any of them is published.

A check that cannot be carried out raises: nothing is published unchecked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from pyspark.sql import DataFrame

from platform_assets.contracts import AsOf, Contract, Input, Reconciliation, Settled
from platform_assets.contracts.rules import SUPERSEDED
from platform_assets.engine.snapshot import LakeSnapshot, ReleaseIndex
from platform_assets.engine.state.planner import Readiness
from platform_assets.engine.step.inputs import published_rows
from platform_assets.engine.step.staging import Staged, examples_of
from platform_assets.planning.windows import days_read, in_any, ranges, union_read
from platform_assets.quality import baseline
from platform_assets.quality.baseline import (
    Interval,
    Undecided,
    is_loss,
    loss_finding,
    not_missed,
    rhythm_of,
    rows_before,
    scant_finding,
    volume_finding,
    volume_verdicts,
    with_rows_before,
)
from platform_assets.quality.deliveries import quarantine_finding
from platform_assets.quality.findings import (
    MISMATCHES,
    Check,
    Checked,
    DayChecks,
    Finding,
    checked,
    checks_before_publication,
)
from platform_assets.quality.gates import (
    MOST,
    as_figures,
    broken_beyond,
    conservation_findings,
    contract_findings,
    drift_of,
    is_settled,
    judged_in_check,
    moved_keys_finding,
    reconciled_sentence,
    reconciliation_finding,
    rolled_back_finding,
    rule_finding,
    rules_checked,
    settled_finding,
)
from platform_assets.records.differences import Differences, Moves, Sum
from platform_assets.records.history import DayRecord
from platform_assets.spark.compare.in_files import at_hand
from platform_assets.spark.compare.profiles import (
    DayKeys,
    keys_in_quarantine,
    keys_not_as_expected,
    keys_of_rivals,
    keys_of_several_rows,
    keys_without,
)
from platform_assets.spark.compare.reconciliation import days_in_files, differences
from platform_assets.spark.compare.row_diff import moved_sums
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import in_ranges, no_rows
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets.spark.windows import History, Windowed
from platform_assets.words import counted

_NONE: DayKeys = {}
ByDay = Mapping[date, Checked]


def judge(
    staged: Staged,
    state: Readiness,
    spark: SparkOnDemand,
    *,
    step_days: Collection[date],
    earlier: Mapping[date, int],
    accept: Mapping[date, Collection[Check]],
) -> dict[date, DayChecks]:
    """Compare the staged days with the contract, their inputs, and other days.

    Args:
        step_days: every day that the same step computes, without up-to-date ones; none is a measure for another.
        earlier: rows of days that the step computed before these.

    Returns:
        What each check says, for every staged day.
    """
    by_check: dict[Check, ByDay] = {}
    for check in checks_before_publication(staged.contract):
        match check:
            case "contract":
                by_check[check] = _contract(staged)
            case "conservation":
                by_check[check] = _conservation(staged)
            case "reconciliation":
                by_check[check] = _reconciliation(staged)
            case "rules":
                by_check[check] = _rules(staged)
            case "volume":
                by_check[check] = _volume(staged, state, step_days, earlier)
            case "settled":
                by_check[check] = _settled(staged, state, spark, accept)
            case _:
                raise AssertionError(check)
    return {
        day: DayChecks(
            staged.digest(day).rows,
            tuple(
                by_day[day].accepted_by_hand() if check in accept.get(day, ()) else by_day[day]
                for check, by_day in by_check.items()
            ),
        )
        for day in staged.days
    }


def _contract(staged: Staged) -> ByDay:
    contract = staged.contract
    nulls = {day: profile.nulls for day, profile in staged.profiles.items() if profile.nulls}
    repeated = [day for day, profile in staged.profiles.items() if profile.repeated_keys]
    without = {
        column: keys_without(
            staged.all_rows, [day for day, counts in nulls.items() if column in counts], column, contract.row_key
        )
        for column in {column for counts in nulls.values() for column in counts}
    }
    twice = keys_of_several_rows(staged.all_rows, repeated, contract.row_key) if repeated else _NONE
    rivals = _rivals(staged) if contract.layer == "silver" else {}
    required = sum(not column.nullable for column in contract.columns)
    result: dict[date, Checked] = {}
    for day in staged.days:
        profile = staged.profile(day)
        examples = {column: keys.get(day, ()) for column, keys in without.items()}
        findings = contract_findings(
            contract,
            day,
            profile.nulls,
            profile.repeated_keys,
            staged.platform.masking,
            without=examples,
            twice=twice.get(day, ()),
        )
        much = quarantine_finding(contract, day, staged.figures(day))
        findings = (*findings, much) if much else findings
        findings = (*findings, *rivals.get(day, ()))
        if day in staged.moved:
            findings = (moved_keys_finding(contract, day, staged.moved[day]), *findings)
        passed = (
            f"{counted(profile.digest.rows, 'row')} in {len(contract.columns)} columns as declared, key "
            f"({', '.join(contract.row_key)}) unique, no null in {required} columns that may have none"
        )
        result[day] = checked("contract", findings, passed, {"rows": profile.digest.rows})
    return result


def _rivals(staged: Staged) -> dict[date, tuple[Finding, ...]]:
    """Report keys whose version no declared order decided, by day."""
    contract, masking = staged.contract, staged.platform.masking
    source = staged.platform.catalogue[contract.inputs[0].table]
    counts = {day: rivals for day in staged.days if (rivals := (staged.counts or {}).get(day, {}).get("rivals", 0))}
    raw, examples = staged.inputs.get(source.name), _NONE
    if counts and isinstance(raw, DataFrame):
        examples = keys_of_rivals(raw, counts, source, contract.quarantine_rules)
    found: dict[date, tuple[Finding, ...]] = {}
    for day, rivals in counts.items():
        shown = [f"{masking.shown_key(source, source.key, key[:-1])} ({key[-1]})" for key in examples.get(day, ())]
        found[day] = (_rivals_finding(contract, source, day, rivals, shown),)
    return found


def _rivals_finding(contract: Contract, source: Contract, day: date, rivals: int, examples: Sequence[str]) -> Finding:
    """Report the keys of a silver day whose version was decided by an undeclared order.

    Args:
        examples: a few of them with the files that their versions came in, sensitive values masked.
    """
    declared = ", ".join((*source.versioned_by, "arrival date"))
    what = f"{counted(rivals, 'key')} with rivals: versions of the same {declared} and another content"
    shown = f"`platform-assets read {SUPERSEDED}{contract.table} --day {day}` shows the versions that lost"
    first = f", such as {examples[0]}" if examples else ""
    return Finding(
        check="contract",
        day=day,
        severity=contract.checks.rivals,
        message=f"{contract.name} on {day}: {what}{first}; the file by name and the row further down decided. {shown}; "
        f"declare a finer order (`updated_at`, or `order` of the source), or more of a key",
        expected=f"one content of a key for each {declared}",
        actual=f"{what}; {shown}",
        examples=tuple(examples),
        numbers={"rivals": rivals},
    )


def _conservation(staged: Staged) -> ByDay:
    contract, platform = staged.contract, staged.platform
    expected = {day: (staged.counts or {}).get(day, {}).get("expected", 0) for day in staged.days}
    lost, won = _NONE, _NONE
    source = platform.catalogue[contract.inputs[0].table]
    raw = staged.inputs.get(contract.inputs[0].table)
    wrong = [day for day in staged.days if staged.is_adopted or expected[day] != staged.digest(day).rows]
    # Keys can be compared only where the transform left them their names.
    if wrong and isinstance(raw, DataFrame) and source.key == contract.key:
        lost, won = keys_not_as_expected(raw, staged.all_rows, wrong, source, contract.quarantine_rules)
    result: dict[date, Checked] = {}
    for day in staged.days:
        row_balance = staged.row_balance(day)
        findings = conservation_findings(
            contract,
            day,
            row_balance,
            platform.masking,
            expected=expected[day],
            raw_recorded=staged.raw_recorded.get(day, 0),
            quarantine_staged=staged.quarantined[day].digest.rows if day in staged.quarantined else 0,
            missing=lost.get(day, ()),
            extra=won.get(day, ()),
        )
        result[day] = checked("conservation", findings, str(row_balance), vars(row_balance))
    return result


def _reconciliation(staged: Staged) -> ByDay:
    contract, masking = staged.contract, staged.platform.masking
    reconciliations = [(declared, _differences(staged, declared)) for declared in contract.reconciles]
    result: dict[date, Checked] = {}
    for day in staged.days:
        compared = [(declared, by_day.get(day, Differences())) for declared, by_day in reconciliations]
        findings = [
            reconciliation_finding(contract, declared, day, differing, masking) for declared, differing in compared
        ]
        numbers = {
            name: sum(getattr(differing, name) for _, differing in compared) for name in ("missing", "extra", "unequal")
        }
        said = "; ".join(reconciled_sentence(declared) for declared, _ in compared)
        of_day = checked("reconciliation", [finding for finding in findings if finding], said, numbers)
        result[day] = replace(of_day, figures={MISMATCHES: sum(numbers.values())})
    return result


def _rules(staged: Staged) -> ByDay:
    contract, platform = staged.contract, staged.platform
    counts = {day: staged.rule_counts(day) for day in staged.days}
    findings: dict[date, list[Finding]] = {day: [] for day in staged.days}
    for rule in judged_in_check(contract):
        broken = {day: of_day[rule.name] for day, of_day in counts.items() if rule.name in of_day}
        broken = {day: count for day, count in broken.items() if broken_beyond(rule, count)}
        examples: Mapping[date, Sequence[str]] = {}
        if broken and not rule.quarantines:
            examples = examples_of(staged, rule, broken)
        elif broken:
            source = platform.catalogue[contract.inputs[0].table]
            raw, shown = staged.inputs[source.name], platform.masking.shown_key
            assert isinstance(raw, DataFrame)
            keys = keys_in_quarantine(rule, raw, broken, source)
            examples = {day: [shown(source, source.key, key) for key in of_day] for day, of_day in keys.items()}
        for day, count in broken.items():
            findings[day].append(rule_finding(contract, rule, day, count, examples.get(day, ())))
    return {day: rules_checked(contract, counts[day], findings[day]) for day in staged.days}


def _differences(staged: Staged, declared: Reconciliation) -> dict[date, Differences]:
    if staged.rows is None:
        return {}
    theirs, snapshot = staged.inputs[declared.upstream], staged.snapshot
    assert not isinstance(theirs, History)
    days: Collection[date] = staged.days
    if staged.few and staged.contract.layer == "gold":  # what silver is made from is more than rows of files
        read = next(read for read in staged.contract.inputs if read.table == declared.upstream)
        spans = union_read(read.window, staged.days, snapshot.calendar)
        files = {day: of_day for day, of_day in snapshot.files(read.table).items() if in_any(spans, day)}
        session = (theirs.frame if isinstance(theirs, Windowed) else theirs).sparkSession
        if few := at_hand(session, snapshot.platform.lake.table_path(read.table), files):
            schema = spark_schema(staged.contract)
            differing = days_in_files((staged.few, few), schema, theirs, declared, days)
            days = days if differing is None else differing
    return differences(staged.all_rows, theirs, declared, days) if days else {}


def _volume(staged: Staged, state: Readiness, step_days: Collection[date], earlier: Mapping[date, int]) -> ByDay:
    contract, snapshot = staged.contract, staged.snapshot
    left_out = {*step_days, *state.holds}
    rhythm = rhythm_of(snapshot.platform.catalogue, contract.name, snapshot.calendar)
    rows = {**earlier, **{day: staged.digest(day).rows for day in staged.days}}
    beside = baseline.RowHistory(rows, rhythm)
    verdicts = volume_verdicts(
        contract,
        rhythm,
        rows,
        {day: record.rows for day, record in state.before.items() if day not in left_out},
        [day for day, hold in state.holds.items() if hold.gate == "volume"],
        {day: state.before[day].rows for day in staged.days if day in state.before},
    )
    lost = _losses(staged, state, {day: verdict.usual for day, verdict in verdicts.items()})
    result: dict[date, Checked] = {}
    for day in staged.days:
        verdict, before = verdicts[day], state.before.get(day)
        if finding := volume_finding(contract, verdict):
            finding = with_rows_before(finding, verdict.rows, before)
        finding = finding or lost.get(day)
        if finding is None and isinstance(verdict.usual, baseline.Undecided) and verdict.usual.lacks_history:
            finding = scant_finding(contract, day, verdict.rows, beside.usual(day), verdict.usual)
        if before and before.rows == verdict.rows and not any(each.gate == "volume" for each in before.warnings):
            finding = None  # nothing was found of as many rows: that other days are compared with now is no news
        findings = [finding] if finding else []
        result[day] = checked("volume", findings, str(verdict), verdict.numbers, judged=verdict.is_known)
    return result


def _losses(staged: Staged, state: Readiness, usual: Mapping[date, Interval | Undecided]) -> dict[date, Finding]:
    """Return a warning for each day that lost more than half of its rows without a similar loss of its inputs.

    Withdrawn rows do not count as missing: for silver they are counted. A table further down is assumed to lose the
    same share as its inputs, which is not always true.
    """
    contract, snapshot = staged.contract, staged.snapshot
    result: dict[date, Finding] = {}
    shown_by = ReleaseIndex(snapshot)
    for day in staged.days:
        there, unjudged, rows = state.before.get(day), usual[day], staged.digest(day).rows
        if there is None or isinstance(unjudged, Interval) or not unjudged.lacks_history:
            continue
        if not is_loss(rows, before := rows_before(there)):
            continue
        if contract.layer == "silver":
            now, then = staged.row_balance(day), there.figures
            gone = not_missed(now.withdrawn - then.get("withdrawn", 0), now.raw - then.get("raw", now.raw))
        else:
            gone = before - round(before * _share_left(snapshot, shown_by, contract, day, there))
        if finding := loss_finding(contract, day, rows, before, unjudged, gone=gone):
            result[day] = finding
    return result


def _share_left(
    snapshot: LakeSnapshot, shown_by: ReleaseIndex, contract: Contract, day: date, there: DayRecord
) -> float:
    """Return the remaining share of a day's input rows: the least share of any input, at most 1.

    Reference data does not determine how many rows a day has.
    """
    shares = [1.0]
    for read in contract.inputs:
        at = shown_by(read.table, there.reads.get(read.table, -1))
        if at >= 0 and not isinstance(read.window, AsOf):
            then, now = _rows_read(snapshot, read, day, at)
            shares += [now / then] if then else []
    return min(shares)


def _rows_read(snapshot: LakeSnapshot, read: Input, day: date, at: int) -> tuple[int, int]:
    """Return the rows of an input that a day reads: at a release, and now."""
    days = set(days_read(read.window, day, snapshot.calendar))
    then = snapshot.platform.ledger.current_days(read.table, at=at, among=days)
    now = snapshot.days(read.table, days)
    return sum(record.rows for record in then.values()), sum(record.rows for record in now.values())


def _settled(
    staged: Staged, state: Readiness, spark: SparkOnDemand, accept: Mapping[date, Collection[Check]]
) -> dict[date, Checked]:
    """Return the finding of settled figures for each staged day, with its drift.

    Deliveries, not the clock, decide when a day is settled: the newest arrival date of all upstream raw tables. Days
    that are published unchanged, or not at all, are not read. Days rolled back without content have no reference: a
    person accepts them.

    Args:
        accept: checks whose blocking findings a person accepts, by day: these sums have not drifted.
    """
    contract, snapshot = staged.contract, staged.snapshot
    newest = _newest_arrival(snapshot, contract)
    settled = {
        declared: [day for day in staged.days if day in state.before and is_settled(declared, day, newest)]
        for declared in contract.settled
    }
    gone = _rolled_back(snapshot, contract, [day for day in staged.days if day not in state.before])
    masking, findings = staged.platform.masking, defaultdict[date, list[Finding]](list)
    drift: defaultdict[date, dict[Sum, Decimal]] = defaultdict(dict)
    for declared, days in settled.items():
        other = [day for day in days if state.before[day].digest != str(staged.digest(day))]
        moves = _moves(staged, declared, other, spark)
        for day in days:
            before, is_accepted = drift_of(state.before[day].figures), "settled" in accept.get(day, ())
            finding, moved = settled_finding(
                contract, declared, day, moves.get(day, Moves()), before, masking, is_accepted=is_accepted
            )
            findings[day] += [finding] if finding else []
            drift[day] |= moved
        for day in gone:
            if is_settled(declared, day, newest):
                findings[day].append(rolled_back_finding(contract, declared, day))
                days.append(day)
    result: dict[date, Checked] = {}
    for day in staged.days:
        judged = "; ".join(str(declared) for declared, days in settled.items() if day in days)
        passed = f"{judged}: moved no further than allowed since the day settled"
        said = passed if judged else "not judged: the day is not settled yet, or was never published"
        of_day = checked("settled", findings[day], said, {}, judged=bool(judged))
        result[day] = replace(of_day, figures=as_figures(drift[day]))
    return result


def _rolled_back(snapshot: LakeSnapshot, contract: Contract, days: Collection[date]) -> list[date]:
    """Return which days without content were published once."""
    if not days or not contract.settled:
        return []
    histories = snapshot.platform.ledger.histories(contract.name, days)
    return sorted(day for day, history in histories.items() if any(record.digest for record in history))


def _newest_arrival(snapshot: LakeSnapshot, contract: Contract) -> date | None:
    """Return the newest arrival date of the upstream raw tables of a table."""
    catalogue = snapshot.platform.catalogue
    raw = [name for name in catalogue.with_inputs([contract.name]) if catalogue[name].source]
    return max((newest for name in raw if (newest := snapshot.delivered(name).newest)), default=None)


def _moves(staged: Staged, declared: Settled, days: Collection[date], spark: SparkOnDemand) -> dict[date, Moves]:
    """Return the declared sums that differ from those of the published days, if these have the columns."""
    if not days:
        return {}
    session, schema, spans = spark(), spark_schema(staged.contract), ranges(days)
    before = published_rows(session, staged.contract, staged.snapshot, spans)
    if not set(declared.by) <= set(before.columns):
        return {}  # there was no such figure that could have settled
    after = no_rows(session, schema) if staged.rows is None else staged.all_rows.where(in_ranges(spans))
    return moved_sums(before, after, declared.sums, declared.by, MOST)
