"""Open, close and override circuits by hand, with reason and author in the chain of decisions.

Also roll back the publication that opened a circuit, if the contract wants that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Literal

from platform_assets.contracts.errors import unknown_table
from platform_assets.engine.circuits import circuits, note_clock
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.planning.circuit import ALL, DOMAIN, ROLLED_BACK, CircuitState
from platform_assets.records.decisions import CircuitDecision

BREAKER = "circuit breaker"
"""Who rolls back what opened a circuit."""


def freeze(platform: Platform, scope: str, author: Author) -> tuple[str, ...]:
    """Open the circuits of a scope until a person closes them, and return its tables.

    Nothing is published in between: when this returns, other publications are done or refused.
    """
    tables = tables_of(platform, scope)
    _decide(platform, "freeze", scope, author)
    return tables


def close(platform: Platform, scope: str, author: Author) -> tuple[str, ...]:
    """Close the circuit of a table, or end the freeze of a domain or of all tables.

    It also ends an override of the same scope. Earlier verdicts no longer count. Circuits that opened by themselves
    stay open when a domain or all tables are closed.
    """
    tables, frozen = tables_of(platform, scope), _frozen(platform)
    states = circuits(platform, tables)
    opened, overridden = states.get(scope), {state.scope for state in states.values() if state.state == "overridden"}
    if scope not in {*frozen, *overridden} and (opened is None or opened.cause is None):
        raise PlatformError(
            f"The circuit of {scope} is not open by itself.",
            "`platform-assets status circuits` shows open ones; "
            f"`admin breaker {scope} --until TIME --reason …` lets it pass.",
        )
    _decide(platform, "close", scope, author)
    return tables


def override(platform: Platform, scope: str, until: datetime, author: Author) -> tuple[str, ...]:
    """Let tables of a scope be published until a time, although their circuits are open."""
    tables = tables_of(platform, scope)
    if until <= datetime.now(UTC):
        raise PlatformError(
            f"An override until {until:%Y-%m-%d %H:%M} UTC would be over already.",
            "Give --until a time that is to come, in UTC.",
        )
    states = circuits(platform, tables).values()
    if not any(state.stops or state.state == "overridden" for state in states):
        raise PlatformError(
            f"No circuit of {scope} is open, so there is nothing to override.",
            "`platform-assets status circuits` shows which are open.",
        )
    _decide(platform, "override", scope, author, until)
    return tables


def tables_of(platform: Platform, scope: str) -> tuple[str, ...]:
    """Return the tables of a scope."""
    catalogue = platform.catalogue
    if scope == ALL:
        return catalogue.names
    if scope.startswith(DOMAIN):
        domains = {domain.name: tuple(contract.name for contract in domain.tables) for domain in catalogue.domains}
        name = scope.removeprefix(DOMAIN)
        if name not in domains:
            raise PlatformError(
                f"There is no domain {name!r}.",
                f"{did_you_mean(name, domains)}Domains are {', '.join(domains)}.",
            )
        return domains[name]
    if scope not in catalogue.names:
        raise unknown_table(scope, (*catalogue.names, *(f"{DOMAIN}{each.name}" for each in catalogue.domains), ALL))
    return (scope,)


def roll_back_opened(platform: Platform, notice: Callable[[str], None]) -> None:
    """Roll back the publications that opened circuits, if the contracts want that.

    Every command that opens the platform calls it at its end, and once at its start, for a process that died.
    """
    note_clock(platform)
    names = [contract.name for contract in platform.catalogue if contract.circuit.rolls_back]
    for table, state in circuits(platform, names).items() if names else ():
        # What people rolled back is gone already.
        if state.cause is None or not state.stops or ROLLED_BACK in state.cause.failed:
            continue
        cause = state.cause
        # What a gate refused is not published; then it is what its run did publish.
        made = (cause.publication,) if cause.publication else platform.ledger.verdicts.publications_of(cause.run, table)
        current = platform.ledger.current_days(table)
        days = [day for day, record in current.items() if record.publication in made]
        if days:
            notice(_rolled_back(platform, table, state, made, days))


def _rolled_back(
    platform: Platform, table: str, state: CircuitState, made: Collection[str], days: Collection[object]
) -> str:
    """Roll publications back and report it."""
    from platform_assets.operations.rollback import rollback  # which few commands need

    records = tuple(record for name in made if (record := platform.ledger.publication(name)))
    assert state.cause is not None
    author = Author(run=state.cause.run, why=f"the circuit of {table} opened: {state.why}", who=BREAKER)
    names = ", ".join(made)
    try:
        done = rollback(platform, records, author)
    except PlatformError as error:
        return f"the circuit of {table} opened, and {names} could not be rolled back: {error.what} {error.todo}"
    return f"the circuit of {table} opened, and {names} was rolled back in release {done.release}"


def _frozen(platform: Platform) -> tuple[str, ...]:
    """Return the scopes that people opened and have not closed since."""
    frozen: dict[str, None] = {}
    for decision in platform.ledger.verdicts.decisions():
        if decision.kind == "freeze":
            frozen[decision.scope] = None
        elif decision.kind == "close":
            frozen.pop(decision.scope, None)
    return tuple(frozen)


def _decide(
    platform: Platform,
    kind: Literal["freeze", "close", "override"],
    scope: str,
    author: Author,
    until: datetime | None = None,
) -> None:
    now = datetime.now(UTC)
    with publish_lock(platform.lake) as still_held:
        # What a dead publisher began was allowed before; after this, nothing more of it comes.
        finish_pending(platform.lake, still_held, ())
        platform.sync()
        note_clock(platform)
        after = platform.ledger.verdicts.newest()
        platform.ledger.decide(
            CircuitDecision(kind=kind, scope=scope, after=after, until=until, **author.signature(now))
        )
    failpoint("circuit.decided")
