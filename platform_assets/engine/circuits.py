"""Circuits of tables in the engine: what they stop from being published, and recording of verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.locks import is_staging, publish_lock
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.planning.circuit import CircuitState, TableVerdict, applies_to, circuit
from platform_assets.records.history import COMPACTION, ERASURE, ROLL_BACK, Hold

_PASSES = (ROLL_BACK, COMPACTION, ERASURE)
"""Kinds of publications that pass an open circuit: none of them shows anything new."""


class CircuitOpenError(PlatformError):
    """The circuit of a table is open; nothing was published."""


def circuits(platform: Platform, tables: Collection[str] | None = None) -> dict[str, CircuitState]:
    """Return the states of circuits, of all or some tables; tables without any verdict are left out."""
    names = [name for name in platform.catalogue.names if tables is None or name in tables]
    verdicts, decisions = platform.ledger.verdicts.of(names), platform.ledger.verdicts.decisions()
    found: dict[str, CircuitState] = {}
    for name in names if verdicts or decisions else ():
        domain = platform.catalogue.domain_of(name).name
        about = [decision for decision in decisions if applies_to(decision, name, domain)]
        if about or name in verdicts:
            policy, its = platform.catalogue[name].circuit, verdicts.get(name, ())
            its = tuple(each for each in its if not (each.lives_by and is_staging(platform.lake, each.lives_by)))
            found[name] = circuit(its, policy, about, datetime.now(UTC))
    return found


def note_clock(platform: Platform) -> None:
    """Record what only the clock shows so far: missing verdicts of other processes, and expired overrides."""
    for table, state in circuits(platform).items():
        for verdict in state.by_clock:
            its = [verdict.number] if verdict.number else []
            if verdict.number not in platform.announced:
                platform.ledger.verdicts.settle(its, replace(verdict, table=table, lives_by=""), once=True)


def stopped(
    platform: Platform, tables: Collection[str] | None = None, states: Mapping[str, CircuitState] | None = None
) -> dict[str, Hold]:
    """Return why tables may not be published: their own open circuit, or one upstream.

    An override lets a table pass regardless of its inputs.
    """
    asked = platform.catalogue.names if tables is None else tables
    states = circuits(platform, platform.catalogue.with_inputs(asked)) if states is None else states
    holds: dict[str, Hold] = {}
    for contract in platform.catalogue if any(state.stops for state in states.values()) else ():
        state = states.get(contract.name, CircuitState())
        by = next((holds[read.table] for read in contract.inputs if read.table in holds), None)
        if state.stops:
            holds[contract.name] = state.hold(contract.name)
        elif by and state.state != "overridden":
            holds[contract.name] = by
    return {table: hold for table, hold in holds.items() if table in asked}


def refuse_stopped(platform: Platform, kind: str, tables: Collection[str]) -> None:
    """Refuse to publish tables if their circuit, or one upstream, is open.

    Publishers call it under the publish lock, which opening a circuit takes too.

    Args:
        kind: kind of the publication; rollbacks, compactions and erasures pass.
        tables: changed tables; quarantine and refused rows belong to theirs.
    """
    known = [] if kind in _PASSES else [table for table in tables if table in platform.catalogue.names]
    if known:
        platform.sync()  # verdicts that follow from what others published
        note_clock(platform)
    for table, hold in stopped(platform, known).items() if known else ():
        waits = "" if hold.table == table else f" {table} is computed from it and waits."
        raise CircuitOpenError(
            f"{hold.reason[:1].upper()}{hold.reason[1:]}; nothing was published.{waits}",
            f"`platform-assets status circuits {hold.table}` says what failed and what ends it.",
        )


def record_verdict(
    platform: Platform, verdict: TableVerdict, announced: Collection[int] = (), *, once: bool = False
) -> None:
    """Record a table's failure, or a successful try, now, in place of announced verdicts: see `settle`."""
    with in_order(platform):
        platform.ledger.verdicts.settle(announced, replace(verdict, at=datetime.now(UTC), is_pending=False), once=once)
    failpoint("circuit.verdict")


@contextmanager
def in_order(platform: Platform) -> Iterator[None]:
    """Write verdicts under the publish lock: other processes publish before it, or are refused if a circuit opens.

    A dead publisher's work was allowed, so it is finished first; if that fails, the next publisher is refused.
    """
    with ExitStack() as held:
        with suppress(PlatformError):  # a verdict is written even if the lock is not free or a table is damaged
            still_held = held.enter_context(publish_lock(platform.lake))
            finish_pending(platform.lake, still_held, ())
        note_clock(platform)
        yield
