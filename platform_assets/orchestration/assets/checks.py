"""Show the engine's findings about every day as asset checks of Dagster.

The engine decides before anything is published: Dagster's own blocking checks hold back only the rest of their run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.engine.step.holds import refused_before
from platform_assets.operations.lineage.held_days import HeldDay, held_days, withdrawals
from platform_assets.orchestration.assets.events import asset_key, day_event, listed, plain, recorded_figures
from platform_assets.orchestration.instance.events import RefusedError, Target, newest_materializations
from platform_assets.planning.day_states import Blocked, Held, UpToDate
from platform_assets.planning.windows import which
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.quality.findings import Check, Checked, Finding, checks_before_publication
from platform_assets.quality.findings import checked as as_checked
from platform_assets.quality.gates import judged_in_check
from platform_assets.records.history import DayRecord
from platform_assets.words import counted, visible

CHECKS: Mapping[Check, str] = {
    "contract": "Columns and types as declared, keys unique, no nulls where none may be; little set aside.",
    "conservation": "Every delivered row is accounted for: kept, superseded, voided, quarantined or refused.",
    "reconciliation": "The same keys and amounts as in the tables it was computed from.",
    "rules": "No more rows break a rule of the contract than it tolerates.",
    "volume": "As many rows as are usual for such a day. With too little history to say so a day has no result, or a "
    "warning if it lost more than half of its rows.",
    "settled": "No settled figure moved further than declared, unless a person accepted it or an approved plan brought "
    "it. A day that is not settled yet has no result.",
    "freshness": "Every due day is published, and none is held.",
}
_SHOWN = 5
"""Findings that the result of a whole run spells out."""

NEW_SINCE = "New since the last good content; what should not have come is taken out with"

_GOOD = ("passed", "not judged")
"""Outcomes that do not fail a run."""

ByDay = Mapping[date, Sequence[Checked]]
NOTHING_HELD: Mapping[date, HeldDay] = MappingProxyType({})


def checks_of(contract: Contract) -> tuple[Check, ...]:
    """Return the checks of a table's days, without freshness, which concerns the whole table."""
    return ("contract", "conservation") if contract.layer == "raw" else checks_before_publication(contract)


def check_specs(contract: Contract, partitions: dg.PartitionsDefinition) -> list[dg.AssetCheckSpec]:
    """Return one spec per check of a table's days."""
    return [
        dg.AssetCheckSpec(
            name,
            asset=asset_key(contract.name),
            description=CHECKS[name],
            blocking=_blocks(contract, name),
            partitions_def=partitions,
        )
        for name in checks_of(contract)
    ]


def _blocks(contract: Contract, name: Check) -> bool:
    """Return whether a finding of the check can keep a day from being published."""
    if contract.layer == "raw" or name == "freshness":
        return False
    if name == "rules":
        return any(rule.severity != "warn" for rule in judged_in_check(contract))
    return name != "reconciliation" or any(declared.severity == "block" for declared in contract.reconciles)


def run_results(
    contract: Contract, days: ByDay, held: Mapping[date, HeldDay] = NOTHING_HELD
) -> Iterator[dg.AssetCheckResult]:
    """Yield one result per check for all days of a step; for a single day, its own."""
    for name in checks_of(contract):
        by_day = {day: checked for day, checks in sorted(days.items()) for checked in checks if checked.check == name}
        if len(by_day) == 1:
            [(day, checked)] = by_day.items()
            text, metadata = visible(checked.sentence), _metadata(contract, day, checked, held.get(day))
        else:
            text, metadata = _summary(by_day), _worst(contract, by_day, held)
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key=asset_key(contract.name),
            passed=all(checked.outcome in _GOOD for checked in by_day.values()),
            severity=_severity(by_day.values()),
            description=text,
            metadata=metadata,
        )


def day_results(
    instance: dg.DagsterInstance, contract: Contract, days: ByDay, held: Mapping[date, HeldDay] = NOTHING_HELD
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the result of every check for every day, for runs over a range of days.

    Dagster 1.13 stores the results of a range run without its days, so each day's result is an event of its own and
    points at the newest materialization of its day. Log these after the materializations.
    """
    newest = newest_materializations(instance, asset_key(contract.name), days)
    for day, checks in sorted(days.items()):
        for checked in checks:
            if checked.outcome == "not judged":
                continue  # Dagster has no result for it but none
            yield _evaluation(contract, day, checked, held.get(day), newest.get(day.isoformat()))


def delivery_events(contract: Contract, day: date, checks: Sequence[Checked]) -> Iterator[dg.AssetCheckEvaluation]:
    """Return results of checks for deliveries of a date that were ingested elsewhere."""
    return (_evaluation(contract, day, checked) for checked in checks)


def _evaluation(
    contract: Contract,
    day: date,
    checked: Checked,
    held: HeldDay | None = None,
    about: Target | None = None,
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(contract.name),
        check_name=checked.check,
        passed=checked.outcome == "passed",
        severity=_severity([checked]),
        description=visible(checked.sentence),
        metadata=_metadata(contract, day, checked, held),
        target_materialization_data=about,
        blocking=checked.outcome == "blocked",
        partition=day.isoformat(),
    )


def without_judgement(contract: Contract, days: Collection[date], by_day: ByDay) -> dict[Check, list[date]]:
    """Return for each check the days of a run that it did not judge."""
    judged = {
        (checked.check, day) for day, checks in by_day.items() for checked in checks if checked.outcome != "not judged"
    }
    return {name: [day for day in days if (name, day) not in judged] for name in checks_of(contract)}


def published_events(
    contract: Contract,
    record: DayRecord,
    sentence: str,
    about: Target | None = None,
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield every check of a day that was judged elsewhere, or earlier, and published: passed, or a warning."""
    for name in checks_of(contract):
        warned = [each for each in record.warnings if each.gate == name]
        yield dg.AssetCheckEvaluation(
            asset_key=asset_key(contract.name),
            check_name=name,
            passed=not warned,
            severity=dg.AssetCheckSeverity.WARN,
            description="\n".join(map(visible, [*(f"{each}." for each in warned), sentence])),
            metadata={
                "expected": plain("; ".join(each.expected for each in warned)),
                "found": plain("; ".join(each.found for each in warned)),
                **_more(contract, record.day),
            }
            if warned
            else {},
            target_materialization_data=about,
            partition=record.day.isoformat(),
        )


def _severity(checks: Collection[Checked]) -> dg.AssetCheckSeverity:
    blocked = any(checked.outcome == "blocked" for checked in checks)
    return dg.AssetCheckSeverity.ERROR if blocked else dg.AssetCheckSeverity.WARN


def _wrong(by_day: Mapping[date, Checked]) -> dict[date, Checked]:
    return {day: checked for day, checked in by_day.items() if checked.outcome not in _GOOD}


def _summary(by_day: Mapping[date, Checked]) -> str:
    if not by_day:
        return "No day was computed: up-to-date days were checked when they were published."
    days = f"{counted(len(by_day), 'day')}, {which(by_day)}"
    wrong = _wrong(by_day).values()
    if not wrong:
        unknown = sum(checked.outcome == "not judged" for checked in by_day.values())
        rest = f"{unknown:,} not judged, the others passed" if unknown < len(by_day) else "none could be judged"
        return f"{days}: {rest if unknown else 'all passed'}."
    counts = {kind: sum(checked.outcome == kind for checked in wrong) for kind in ("blocked", "warned")}
    sentences = [f"{visible(checked.sentence)}." for checked in wrong]
    if len(sentences) > _SHOWN:
        sentences[_SHOWN:] = [f"and {len(sentences) - _SHOWN:,} more"]
    head = f"{days}: {', '.join(f'{count:,} {kind}' for kind, count in counts.items() if count)}."
    return "\n".join((head, *sentences))


def _worst(
    contract: Contract, by_day: Mapping[date, Checked], held: Mapping[date, HeldDay]
) -> dict[str, dg.MetadataValue]:
    metadata: dict[str, dg.MetadataValue] = {"days": plain(f"{len(by_day):,}")}
    if wrong := _wrong(by_day):
        metadata["days not passed"] = dg.MetadataValue.json(
            {str(day): checked.outcome for day, checked in wrong.items()}
        )
        worst = min(wrong, key=lambda day: (wrong[day].outcome != "blocked", day))
        blocked = [held[day] for day, checked in wrong.items() if checked.outcome == "blocked" and day in held]
        metadata |= _to_be_taken_out(blocked)
        metadata |= _rows_to_look_at(contract, worst, held=wrong[worst].outcome == "blocked")
    return metadata


def _metadata(contract: Contract, day: date, checked: Checked, held: HeldDay | None) -> dict[str, dg.MetadataValue]:
    # As text: Dagster would plot numbers over the time of checking, through days that lie anywhere in the past.
    numbers: dict[str, dg.MetadataValue] = {name: plain(f"{value:,}") for name, value in checked.numbers.items()}
    if not checked.findings:
        return numbers
    examples = [example for finding in checked.findings for example in finding.examples]
    more: dict[str, dg.MetadataValue] = {
        "expected": plain("; ".join(finding.expected for finding in checked.findings)),
        "found": plain("; ".join(finding.actual for finding in checked.findings)),
    }
    if examples:
        more["examples"] = listed(examples)
    if held is not None and checked.outcome == "blocked":
        more["held since"] = plain(f"{held.since:%Y-%m-%d %H:%M} UTC")
        more["instead"] = plain(held.instead)
        more |= {"changed since": plain(", ".join(held.changed))} if held.changed else {}
        more |= _to_be_taken_out([held])
    if checked.outcome == "warned" and contract.inputs:
        more |= _more(contract, day)
    return {**more, **numbers, **_rows_to_look_at(contract, day, held=checked.outcome == "blocked")}


def _more(contract: Contract, day: date) -> dict[str, dg.MetadataValue]:
    """Return the command that explains a warning."""
    return {"what came with it": plain(f"platform-assets why {contract.name} {day}")}


def _to_be_taken_out(held: Collection[HeldDay]) -> dict[str, dg.MetadataValue]:
    """Return possible causes: arrivals, each as the command that withdraws it."""
    # As texts: the page of a check hides Markdown behind a link.
    return {
        f"new since ({number})" if number > 1 else "new since": plain(command)
        for number, command in enumerate(withdrawals(held), start=1)
    }


def _rows_to_look_at(contract: Contract, day: date, *, held: bool) -> dict[str, dg.MetadataValue]:
    """Return the command that shows the rows set aside, or the input rows of a held day."""
    if contract.layer == "raw":
        table = refused_table(contract.name)
    elif held:
        table = contract.inputs[0].table
    elif contract.quarantine_rules:
        table = quarantine_table(contract.name)
    else:
        return {}
    return {"rows to look at": plain(f"platform-assets read {table} --day {day}")}


TableDay = tuple[str, date]
"""A day of a table."""

_LEFT = "days"
_SPELT_OUT = 20
"""Days for which a failed step gives reasons."""

_MOST_DAYS = 50
"""Days of a table that are looked up in full: that opens files of raw days."""


def failures(done: IngestResult | StepResult) -> dict[date, str]:
    """Return unpublished days, each with the reason in a sentence or two."""
    if isinstance(done, IngestResult):
        return dict.fromkeys(done.missing, "its source has not delivered it yet, and the day is not declared closed")
    return done.not_published


def days_left(
    title: str,
    days: Mapping[str, Mapping[date, str]],
    held: Iterable[HeldDay] = (),
    stops: Iterable[str] = (),
) -> RefusedError:
    """Return the failure of a step that did not publish some days, for a person who has to act.

    Args:
        days: each with the reason, by table, inputs first; at least one.
        stops: reasons of open circuits that stopped some of the days; shown first.
    """
    reasons = [(table, day, why) for table, of_table in days.items() for day, why in sorted(of_table.items())]
    known = tuple(held)
    instead = {(of_day.hold.table, of_day.hold.day): f"; {of_day.instead}" for of_day in known}
    lines = [f"{table} {day}: {why}{instead.get((table, day), '')}" for table, day, why in reasons[:_SPELT_OUT]]
    if len(reasons) > _SPELT_OUT:
        lines.append(f"and {len(reasons) - _SPELT_OUT:,} more")
    if commands := withdrawals(known):
        lines += [NEW_SINCE, *commands]
    table, day, _ = reasons[0]
    todo = f"What to do: `platform-assets why {table} {day}` says all that is known of the day; then docs/on-call.md."
    left = {name: sorted(map(str, of_table)) for name, of_table in days.items() if of_table}
    return RefusedError("\n".join(map(visible, [*stops, title, *lines, todo])), {_LEFT: dg.MetadataValue.json(left)})


def recorded_days_left(metadata: Mapping[str, dg.MetadataValue]) -> frozenset[TableDay]:
    """Return the days that a step did not publish, from the metadata of its failure."""
    left = metadata.get(_LEFT)
    if not isinstance(left, dg.JsonMetadataValue) or not isinstance(left.data, dict):
        return frozenset()
    return frozenset((table, date.fromisoformat(day)) for table, days in left.data.items() for day in days)


def checks_of_result(platform: Platform, contract: Contract, done: IngestResult | StepResult) -> ByDay:
    """Return the result of every check by day; for a raw table by arrival date."""
    if isinstance(done, IngestResult):
        return delivery_checks(contract, done.arrivals, platform.calendar.days())
    # A day that was refused before and not tried again is as red as it was.
    held = {day: _red(contract, findings) for day, findings in done.held.items() if day not in done.checks}
    return held | {day: tried.checks for day, tried in done.checks.items()}


def checks_of_held(contract: Contract, held: Mapping[date, HeldDay]) -> ByDay:
    """Return the finding of the check that holds a day; no check holds a day that a person rolled back."""
    return {day: _red(contract, map(refused_before, of_day.holds)) for day, of_day in held.items()}


def _red(contract: Contract, findings: Iterable[Finding]) -> tuple[Checked, ...]:
    return tuple(
        as_checked(finding.check, [finding], "", {}) for finding in findings if finding.check in checks_of(contract)
    )


def what_holds(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, HeldDay]:
    """Return the hold of some days: each day's own, or that of a day that it reads.

    Args:
        days: unpublished days; of many the oldest are examined, of a raw table none.
    """
    if not contract.inputs or not days:
        return {}
    _, states = states_around(LakeSnapshot.now(platform), contract, sorted(days)[:_MOST_DAYS])
    holds = {day: state.hold for day, state in states.items() if isinstance(state, Held | Blocked) and state.hold}
    named = {(hold.table, hold.day) for hold in holds.values()}
    standing = [hold for hold in platform.ledger.holds() if (hold.table, hold.day) in named] if named else []
    said = {(held.hold.table, held.hold.day): held for held in held_days(platform, standing)}
    return {day: said[hold.table, hold.day] for day, hold in holds.items() if (hold.table, hold.day) in said}


def good_days(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, DayRecord]:
    """Return the days that are up to date now, no matter which process published them."""
    snapshot = LakeSnapshot.now(platform)
    if contract.source is not None:
        good = set(snapshot.digests(contract.name)).intersection(days)
    else:
        _, states = states_around(snapshot, contract, days)
        good = {day for day, state in states.items() if isinstance(state, UpToDate)}
    return {day: record for day, record in snapshot.days(contract.name, sorted(good)).items() if day in good}


def good_day_events(contract: Contract, days: Mapping[date, DayRecord]) -> Iterator[dg.AssetMaterialization]:
    """Yield one event for every day, oldest first."""
    for day, record in sorted(days.items()):
        yield day_event(contract.name, day, record.digest, recorded_figures(record) | {"state": plain("up to date")})
