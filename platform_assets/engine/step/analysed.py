"""The session, given once Spark's analyser finds nothing wrong; what it found right it does not look at twice.

The first look of a process costs it several seconds, in which Java learns to analyse: as much as a small correction
takes. So what was found right is kept in the state folder, by everything that the verdict depends on. A file that is
not there, or cannot be read or written, costs a look. A step holds against the contract what a transform really
returns in any case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import SparkSession

from platform_assets.contracts import Contract
from platform_assets.engine.circuits import Failure, record_failure, stopped
from platform_assets.engine.day_contents import computed_with
from platform_assets.engine.mistake import Mistake, refuse_mistakes
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.engine.step.analysis import analysis_mistakes
from platform_assets.engine.step.holds import failed_by
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.day_states import Stale
from platform_assets.records.code_version import Attempt
from platform_assets.spark.session.configuration import software_of
from platform_assets.spark.session.on_demand import SparkOnDemand


def analysed(platform: Platform, tables: Collection[str], spark: SparkOnDemand, run: str = "") -> SparkOnDemand:
    """Return the same session, given only once its analyser has found nothing wrong with some tables.

    So what computes nothing starts none, and what computes learns of every mistake before it loads anything. Those of
    a table that a circuit stops keep no other from being computed: a try of the circuit finds them again.

    Args:
        tables: to look at, with the raw ones they are made from.
        run: that a mistake fails, as circuits count; empty where none is to count it.
    """

    def session() -> SparkSession:
        given = spark()
        raw = platform.catalogue.with_inputs(tables)  # what is taken for the tables is judged by conditions, too
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
    """Write down for circuits that the code of tables failed, at the newest day that it would have computed."""
    failed = {mistake.table: failed_by(mistake.error) for mistake in mistakes if mistake.error}
    snapshot = LakeSnapshot.now(platform)
    for table in platform.code_versions.keys() & failed.keys():
        states = states_around(snapshot, platform.catalogue[table], snapshot.calendar.days())[1]
        stale = {day: state.fingerprint for day, state in states.items() if isinstance(state, Stale)}
        if stale and "code" in failed[table]:
            attempt = Attempt(stale[max(stale)], platform.version(table))
            record_failure(platform, table, run, Failure(failed[table], max(stale), attempt))


def _verdict_on(platform: Platform, contract: Contract, software: Mapping[str, str]) -> str:
    """Names what a table's analysis depends on; empty where that is not known, its code version being set by hand."""
    if contract.code_version is not None or platform.catalogue.domain_of(contract.name).code_version is not None:
        return ""
    sources = (platform.catalogue[read.table] for read in contract.inputs)
    # Sets have no order that two processes share; no analysis asks which days are closed.
    declared = [repr(replace(part, closed_days=frozenset())) for part in (contract, *sources)]
    known = [*declared, platform.code_versions.get(contract.name), sorted(computed_with(software).items())]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _file(platform: Platform) -> Location:
    return located(platform.settings.state / "analysed.json")


def _found_right(file: Location) -> dict[str, str]:
    with suppress(OSError, LakeError, ValueError):
        kept = json.loads(file.read() or b"{}")
        if isinstance(kept, dict):
            return kept
    return {}


def _remember(platform: Platform, found: Mapping[str, str]) -> None:
    """Keep what was found, of tables that are still there; of two processes at once, one may have to look again."""
    file = _file(platform)
    kept = {table: verdict for table, verdict in _found_right(file).items() if table in platform.catalogue.names}
    with suppress(OSError, LakeError):
        file.replace(json.dumps(kept | dict(found), sort_keys=True, indent=1).encode())
