"""The configuration of a table: what its contract says about the content of its days, and what a change of it means.

Descriptions, owners, how serious a check is, when a day is overdue: none of that is here, because no row depends on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from platform_assets.contracts import AsOf, Catalogue, Contract
from platform_assets.planning.windows import window_text

Parts = dict[str, Any]
"""The parts as JSON has them: lists, mappings and scalars."""


@dataclass(frozen=True)
class Configuration:
    """What a contract says about the content of its table.

    Args:
        parts: by name: columns, key, inputs, rules, order.
    """

    parts: Parts

    @property
    def hash(self) -> str:
        """The same for contracts that mean the same."""
        return hashlib.sha256(json.dumps(self.parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ContractChange:
    """One difference between the contract that a day was computed under and today's.

    Args:
        what: of one of the kinds below, for a person, with the column or rule by name.
        compatible: what readers had is still there and means the same.
        fits: the table on disk can take days of today's contract.
    """

    what: str
    compatible: bool
    fits: bool = True

    def __str__(self) -> str:
        if not self.fits:
            return f"{self.what}: the table cannot take it"
        return f"{self.what}: {'compatible' if self.compatible else 'another content'}, its days are stale"


def configuration(catalogue: Catalogue, contract: Contract) -> Configuration:
    """The parts of a contract that a day's content follows from, and those of its inputs by which it is computed."""
    return Configuration(
        {
            "columns": {column.name: [column.type, column.nullable] for column in contract.columns},
            "key": list(contract.key),
            "inputs": {read.table: window_text(read.window) for read in contract.inputs},
            "rules": {rule.name: rule.expression for rule in contract.rules},
            "order": _order(catalogue, contract),
        }
    )


def contract_changes(before: Parts, after: Parts) -> tuple[ContractChange, ...]:
    """What differs between two configurations of a table, part by part, columns first.

    A column that is added with nulls allowed is compatible; one that is dropped, renamed, retyped or made to have no
    nulls is not, nor is another key, rule, input, window or order of versions. A table on disk takes neither more nor
    fewer columns nor other types: its days cannot lie beside those it has.
    """
    return (
        *_columns(before.get("columns", {}), after.get("columns", {})),
        *_whole("key", before.get("key"), after.get("key"), _listed),
        *_named("rule", before.get("rules", {}), after.get("rules", {})),
        *_named("input", before.get("inputs", {}), after.get("inputs", {})),
        *_named("order", before.get("order", {}), after.get("order", {})),
    )


def columns_that_do_not_fit(table: Mapping[str, str], contract: Contract) -> tuple[ContractChange, ...]:
    """What keeps days of today's contract out of a table on disk.

    Args:
        table: type of every declared column that the table has, by name, in the contract's words.
        contract: of the table.
    """
    now = {column.name: [column.type, column.nullable] for column in contract.columns}
    # A Delta table does not say which nulls its contract allowed.
    before = {name: [type_, now.get(name, [type_, True])[1]] for name, type_ in table.items()}
    return tuple(change for change in _columns(before, now) if not change.fits)


def _columns(before: Mapping[str, list[Any]], after: Mapping[str, list[Any]]) -> list[ContractChange]:
    added = {name: spec for name, spec in after.items() if name not in before}
    dropped = {name: spec for name, spec in before.items() if name not in after}
    found: list[ContractChange] = []
    for old, spec in list(dropped.items()):
        # One column gone and one of its type come, and no more of either: a new name rather than two changes.
        if [old] == [n for n, s in dropped.items() if s[0] == spec[0]] and len(
            new := [n for n, s in added.items() if s[0] == spec[0]]
        ) == 1:
            found.append(ContractChange(f"column {old!r} renamed to {new[0]!r}", compatible=False, fits=False))
            del dropped[old], added[new[0]]
    found += [ContractChange(f"column {name!r} dropped", compatible=False, fits=False) for name in dropped]
    found += [
        ContractChange(
            f"column {name!r} ({type_}{'' if nullable else ', no nulls'}) added", compatible=nullable, fits=False
        )
        for name, (type_, nullable) in added.items()
    ]
    for name in before.keys() & after.keys():
        (old_type, old_nulls), (new_type, new_nulls) = before[name], after[name]
        if old_type != new_type:
            what = f"column {name!r} retyped from {old_type} to {new_type}"
            found.append(ContractChange(what, compatible=False, fits=False))
        elif old_nulls != new_nulls:
            what = f"column {name!r} {'may' if new_nulls else 'may not'} be null now"
            found.append(ContractChange(what, compatible=new_nulls))
    return sorted(found, key=lambda change: change.what)


def _named(noun: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ContractChange]:
    changes = {
        **{name: f"{noun} {name!r} removed" for name in before.keys() - after.keys()},
        **{name: f"{noun} {name!r} added ({after[name]})" for name in after.keys() - before.keys()},
        **{
            name: f"{noun} {name!r} changed from {before[name]} to {after[name]}"
            for name in before.keys() & after.keys()
            if before[name] != after[name]
        },
    }
    return [ContractChange(changes[name], compatible=False) for name in sorted(changes)]


def _whole(noun: str, before: Any, after: Any, shown: Callable[[Any], str]) -> list[ContractChange]:
    if before == after or before is None:
        return []
    return [ContractChange(f"{noun} changed from {shown(before)} to {shown(after)}", compatible=False)]


def _listed(names: list[str]) -> str:
    return f"({', '.join(names)})"


def _order(catalogue: Catalogue, contract: Contract) -> dict[str, Any]:
    """How the rows of inputs are told apart and put in order: of raw tables by silver, of as-of inputs by gold."""
    found: dict[str, Any] = {}
    for read in contract.inputs:
        source = catalogue[read.table]
        if source.layer == "raw":
            found |= {
                f"{read.table} key": list(source.key),
                f"{read.table} event_time": source.event_time,
                f"{read.table} updated_at": source.updated_at,
                f"{read.table} voided": source.voided,
                f"{read.table} moves_within_days": source.moves_within_days,
            }
        elif isinstance(read.window, AsOf):
            found[f"{read.table} key"] = list(source.key)
            found[f"{read.table} effective"] = catalogue[source.inputs[0].table].event_time
    return found
