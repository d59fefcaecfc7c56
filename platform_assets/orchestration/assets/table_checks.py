"""Check whole tables, not single days: freshness and the circuit after runs and every hour, comparisons by a schedule.

A comparison that a contract declares has its own severity, and is charted over time.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from platform_assets.contracts import Catalogue, Comparison, Contract
from platform_assets.engine.circuits import circuits, stopped
from platform_assets.engine.platform import Platform
from platform_assets.engine.readings import verify_source
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.reconcile import reconcile
from platform_assets.orchestration.assets.checks import CHECKS
from platform_assets.orchestration.assets.events import asset_key, listed, markdown, plain
from platform_assets.orchestration.assets.pictures import MOST_DAYS, Chart
from platform_assets.orchestration.instance.events import target_of
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.planning.arrivals import delays
from platform_assets.planning.circuit import CircuitState
from platform_assets.planning.windows import as_named, which
from platform_assets.quality.baseline import quiet_days
from platform_assets.quality.deliveries import freshness_finding, overdue_days
from platform_assets.quality.sides import SidesBeside, facts, key_sentence
from platform_assets.sources.source import Source
from platform_assets.words import visible

_SHOWN = 10
_ABOUT = {
    "freshness": CHECKS["freshness"],
    "circuit": "Open after failures, or opened by a person, it lets nothing of the table be published; readers keep "
    "what they have.",
}
_Look = Callable[[Contract], dg.AssetCheckResult]


def build_freshness(catalogue: Catalogue) -> dg.AssetChecksDefinition:
    """Build two checks for each whole table: freshness and circuit."""
    specs = [
        dg.AssetCheckSpec(name, asset=asset_key(contract.name), description=about)
        for contract in catalogue
        for name, about in _ABOUT.items()
    ]

    @dg.multi_asset_check(
        name="freshness",
        specs=specs,
        can_subset=True,
        description="Reads the ledger only: it starts no Spark session.",
    )
    def freshness(context: dg.AssetCheckExecutionContext, platform: PlatformResource) -> Iterator[dg.AssetCheckResult]:
        with platform.open() as opened:
            looks = _looks(opened)
            for contract in opened.catalogue:
                for name, look in looks.items():
                    if dg.AssetCheckKey(asset_key(contract.name), name) in context.selected_asset_check_keys:
                        yield look(contract)

    return freshness


def freshness_events(instance: dg.DagsterInstance, platform: Platform) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the results for every table as events, for jobs without assets."""
    looks = _looks(platform)
    for contract in platform.catalogue:
        for record in instance.fetch_materializations(asset_key(contract.name), limit=1).records:
            for name, look in looks.items():
                check = look(contract)
                yield dg.AssetCheckEvaluation(
                    asset_key=asset_key(contract.name),
                    check_name=name,
                    passed=check.passed,
                    severity=check.severity,
                    description=check.description,
                    metadata=check.metadata,
                    target_materialization_data=target_of(record),
                )


def _looks(platform: Platform) -> Mapping[str, _Look]:
    """Return the functions that examine a table, for each of the two checks."""
    held = held_days(platform, platform.ledger.holds(), with_arrivals=False)
    states = circuits(platform)
    stops = stopped(platform, states=states)

    def circuit(contract: Contract) -> dg.AssetCheckResult:
        state, by = states.get(contract.name, CircuitState()), stops.get(contract.name)
        waits = by.reason if by and by.table != contract.name else ""
        return _circuit(contract, state, waits, datetime.now(UTC))

    return {"freshness": lambda contract: _result(platform, contract, held), "circuit": circuit}


def _circuit(contract: Contract, state: CircuitState, waits: str, now: datetime) -> dg.AssetCheckResult:
    """Return the state of a table's circuit: an error if it stops the table itself, a warning if the table waits."""
    sentence = state.sentence(contract.name) if state.why else f"The circuit of {contract.name} is closed."
    metadata: dict[str, dg.MetadataValue] = {"state": plain(state.state)}
    if state.changes:
        metadata["history"] = markdown(_history(contract, state, now))
    if state.why:
        metadata["why"] = plain(state.why)
    moments = {"since": state.since, "next try": state.next_try, "overridden until": state.until}
    metadata |= {name: plain(f"{at:%Y-%m-%d %H:%M} UTC") for name, at in moments.items() if at}
    if waits:
        metadata["waits for"] = plain(waits)
    if state.stops or waits:
        metadata["what to do"] = plain(f"platform-assets status circuits {contract.name}; docs/circuit.md")
    return dg.AssetCheckResult(
        check_name="circuit",
        asset_key=asset_key(contract.name),
        passed=state.state == "closed" and not waits,
        severity=dg.AssetCheckSeverity.ERROR if state.stops else dg.AssetCheckSeverity.WARN,
        description=visible(f"{contract.name} waits: {waits}" if waits and not state.why else sentence),
        metadata=metadata,
    )


def _history(contract: Contract, state: CircuitState, now: datetime) -> str:
    """Chart on which of the last days the circuit was open, even for a moment: 1, else 0."""
    today = now.date()
    days = [today - timedelta(days=back) for back in range(MOST_DAYS)]

    def was_open(day: date) -> bool:
        before = [change for change in state.changes if change.at.date() < day][-1:]
        on_it = [change for change in state.changes if change.at.date() == day]
        return any(change.state not in ("closed", "overridden") for change in (*before, *on_it))

    return Chart(f"{contract.name} open", "open", {day: float(was_open(day)) for day in days}, today).markdown()


def _result(platform: Platform, contract: Contract, held: Collection[HeldDay]) -> dg.AssetCheckResult:
    """Return a check result with the table's overdue and held days, so that its page does not look healthy."""
    published = LakeSnapshot.now(platform).marks([contract.name])[contract.name]
    quiet = quiet_days(platform.catalogue, contract.name, published, platform.calendar)
    days = platform.calendar.days()
    delay = delays(platform.catalogue)[contract.name]
    overdue = overdue_days(contract, published, platform.calendar, platform.settings.current_day(), delay)
    finding = freshness_finding(contract, overdue, delay)
    metadata: dict[str, dg.MetadataValue] = {
        "days published": dg.MetadataValue.int(len(published) - len(quiet)),
        "days in the calendar": dg.MetadataValue.int(len(days)),
        "days overdue": dg.MetadataValue.int(len(overdue)),
        "closed days": dg.MetadataValue.int(sum(not contract.expects(day) for day in days)),
    }
    if overdue:
        spans = [f"- {span}" for span in as_named(overdue)]
        more = [f"- and {len(spans) - _SHOWN:,} more"] if len(spans) > _SHOWN else []
        metadata["overdue"] = markdown("\n".join(spans[:_SHOWN] + more))
    mine = [f"{day.hold.day} {day.sentence}" for day in held if day.hold.table == contract.name]
    sentences = [finding.message] if finding else []
    if mine:
        metadata["days held"] = dg.MetadataValue.int(len(mine))
        metadata["held"] = listed(mine[:_SHOWN], [f"and {len(mine) - _SHOWN:,} more"] if len(mine) > _SHOWN else [])
        sentences.append(f"{contract.name}: {len(mine):,} held, {mine[0]}")
    blocks = bool(mine) or (finding is not None and finding.blocks)
    newest = max(published.keys() - quiet, default=None)
    return dg.AssetCheckResult(
        check_name="freshness",
        asset_key=asset_key(contract.name),
        passed=not sentences,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        description="\n".join(map(visible, sentences))
        or f"Every expected day is there, none is held; the newest is {newest}.",
        metadata=metadata,
    )


_DRIFT = "drift"
_KEYS_SHOWN = 10
"""Keys of each kind that a result names."""


def build_comparisons(catalogue: Catalogue) -> list[dg.AssetChecksDefinition]:
    """Return checks for declared comparisons, and for drift of sources that are read; nothing without any."""
    declared = {_key(contract, one): (contract, one) for contract in catalogue for one in contract.comparisons}
    reading = [contract for contract in catalogue if isinstance(contract.source, Source)]
    if not (declared or reading):
        return []
    specs = [
        dg.AssetCheckSpec(
            key.name,
            asset=key.asset_key,
            description=visible(
                f"The same as {one.other}, by {', '.join(one.by or contract.row_key)}; tolerance: {one.allowed}."
            ),
        )
        for key, (contract, one) in declared.items()
    ]
    about = "Each day has what its source has, by count and checksum; what drifted is read again."
    specs += [dg.AssetCheckSpec(_DRIFT, asset=asset_key(contract.name), description=about) for contract in reading]

    @dg.multi_asset_check(
        name="comparisons",
        specs=specs,
        can_subset=True,
        description="Compares tables with the sides that their contracts name, by day, and by key where they differ.",
        pool=TABLES_POOL,
    )
    def comparisons(
        context: dg.AssetCheckExecutionContext, platform: PlatformResource, spark: SparkResource
    ) -> Iterator[dg.AssetCheckResult]:
        with platform.open() as opened:
            for key, asked in declared.items():
                if key in context.selected_asset_check_keys:
                    yield _compared(opened, spark, *asked)
            for contract in reading:
                if dg.AssetCheckKey(asset_key(contract.name), _DRIFT) in context.selected_asset_check_keys:
                    yield _drift(opened, contract)

    return [comparisons]


def _drift(platform: Platform, contract: Contract) -> dg.AssetCheckResult:
    """Compare a raw table with its source; drift is a warning, since the next refresh corrects it."""
    metadata: dict[str, dg.MetadataValue] = {}
    try:
        found = verify_source(platform, contract, None, _KEYS_SHOWN)
    except PlatformError as error:
        passed, description = False, str(error)
    else:
        kinds = ", ".join(f"{number:,} {what}" for what, number in found.keys.items())
        passed = not found
        description = f"{kinds}; read again, for the next refresh." if found else "No day differs from the source."
        metadata = {
            "days compared": dg.MetadataValue.int(found.days),
            "days different": dg.MetadataValue.int(len(found.differing)),
            "keys drifted": dg.MetadataValue.int(sum(found.keys.values())),
        }
        if found:
            metadata["keys"] = listed(f"{one.day} {one.key}: {one.what}" for one in found.examples)
    return dg.AssetCheckResult(
        check_name=_DRIFT,
        asset_key=asset_key(contract.name),
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=metadata,
    )


def _key(contract: Contract, declared: Comparison) -> dg.AssetCheckKey:
    return dg.AssetCheckKey(asset_key(contract.name), f"comparison_{declared.name}")


def _compared(
    platform: Platform, spark: SparkResource, contract: Contract, declared: Comparison
) -> dg.AssetCheckResult:
    """Return the result of a comparison; an impossible one has failed, and does not stop others."""
    is_error = declared.severity == "block"
    metadata: dict[str, dg.MetadataValue]
    try:
        found = reconcile(
            platform,
            lambda: spark.spark_session,
            (contract.name, declared.other),
            by=declared.by or None,
            tolerance=declared.allowed,
            drill=True,
            most=_KEYS_SHOWN,
        )
    except PlatformError as error:
        passed, description, metadata = False, str(error), {}
    else:
        passed, description, metadata = found.agree, "\n".join(map(visible, facts(found))), _figures(found)
    return dg.AssetCheckResult(
        check_name=_key(contract, declared).name,
        asset_key=asset_key(contract.name),
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=metadata,
    )


def _figures(found: SidesBeside) -> dict[str, dg.MetadataValue]:
    """Return the figures of one moment as numbers: Dagster charts them over the times of the check."""
    counts = found.counts
    metadata: dict[str, dg.MetadataValue] = {
        "days compared": dg.MetadataValue.int(found.days),
        "days different": dg.MetadataValue.int(len(found.different)),
        "rows left": dg.MetadataValue.int(found.rows[0]),
        "rows right": dg.MetadataValue.int(found.rows[1]),
        "keys missing left": dg.MetadataValue.int(counts.missing_left if counts else 0),
        "keys missing right": dg.MetadataValue.int(counts.missing_right if counts else 0),
        "keys different": dg.MetadataValue.int(counts.different if counts else 0),
    }
    for name, (left, right) in found.sums.items():
        if left is not None and right is not None:
            metadata[f"{name}, left less right"] = dg.MetadataValue.float(float(left - right))
    if found.different:
        metadata["which days"] = plain(which([day.day for day in found.different]))
    if found.keys:
        metadata["keys"] = listed(map(key_sentence, found.keys))
    return metadata
