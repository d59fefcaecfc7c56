"""Configuration of a table: the part of its contract that affects the content of days, and the effect of changes.

Descriptions, owners, severities of checks and freshness are not part of it, because no row depends on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from platform_assets.contracts import AsOf, Catalogue, Contract, Rule
from platform_assets.contracts.columns import digits_of
from platform_assets.contracts.files import declared_parts
from platform_assets.planning.windows import window_text

_OF_READING = ("moves_within_days", "versions", "files")
"""Parts of the order of a raw table's rows that no row has in it, or only those of files to come."""

Parts = dict[str, Any]
"""The parts as JSON has them: lists, mappings and scalars."""


@dataclass(frozen=True)
class Configuration:
    """The part of a contract that affects the content of its table.

    Args:
        parts: parts by name: columns, key, inputs, rules, order; judged, if a rule can refuse a day.
    """

    parts: Parts

    @property
    def hash(self) -> str:
        """Return a hash that equivalent contracts share."""
        return hashlib.sha256(json.dumps(self.parts, sort_keys=True).encode()).hexdigest()[:16]


Need = Literal["nothing", "any days", "all days", "another table"]
"""What the table on disk needs to follow a change, from least to most."""

NEEDS: tuple[Need, ...] = get_args(Need)


@dataclass(frozen=True)
class ContractChange:
    """A difference between the contract that computed a day and today's.

    Args:
        what: the change for a person, with the column or rule by name.
        compatible: whether everything that readers had is still there with the same meaning.
        needs: `nothing` if days of both contracts can coexist; `any days` if the table gets other columns with the
            first recomputed days, and the others read right; `all days` if it must get all of them in one publication;
            `another table` if it cannot follow.
        is_of_column: whether a column differs.
    """

    what: str
    compatible: bool
    needs: Need = "nothing"
    is_of_column: bool = False

    def __str__(self) -> str:
        means = "compatible" if self.compatible else "another content"
        match self.needs:
            case "nothing":
                return f"{self.what}: {means}, its days are stale"
            case "any days":
                return f"{self.what}: {means}; enters with the next days that are published, the others show nulls"
            case "all days":
                return f"{self.what}: {means}; enters with all days of the table in one publication"
            case "another table":
                return f"{self.what}: the table cannot take it, since raw rows are kept as they were delivered"


def need_of(changes: Iterable[ContractChange]) -> Need:
    """Return what a table needs to follow all of these changes."""
    return max((change.needs for change in changes), key=NEEDS.index, default="nothing")


def configuration(catalogue: Catalogue, contract: Contract) -> Configuration:
    """Return the parts of a contract, and of its inputs, that determine a day's content."""
    judged = {rule.name: _judged(rule) for rule in contract.rules if rule.allowed is not None}
    return Configuration(
        {
            "columns": {column.name: [column.type, column.nullable] for column in contract.columns},
            "key": list(contract.key),
            "inputs": {read.table: window_text(read.window) for read in contract.inputs},
            "rules": {rule.name: _rule(rule) for rule in contract.quarantine_rules},
            "order": _order(catalogue, contract),
            **({"judged": judged} if judged else {}),  # no row depends on it, but what was refused by another is tried
        }
    )


def settling(parts: Parts) -> Parts:
    """Return the parts that decide which version of a record counts."""
    return {name: parts.get(name) for name in ("key", "rules", "order")}


def contract_changes(before: Parts, after: Parts) -> tuple[ContractChange, ...]:
    """Return the differences between two configurations of a table, part by part, columns first.

    An added nullable column and a widened one are compatible; a dropped, renamed or retyped column, or one that becomes
    not null, is not, nor is another key, rule, input, window or order of versions. Days with different keys cannot
    coexist, nor can files with another type for a column or with a dropped one.
    """
    return (
        *_columns(before.get("columns", {}), after.get("columns", {})),
        *_whole("key", before.get("key"), after.get("key"), _listed),
        *_named("rule", before.get("rules", {}), after.get("rules", {})),
        *(replace(one, compatible=True) for one in _named("rule", before.get("judged", {}), after.get("judged", {}))),
        *_named("input", before.get("inputs", {}), after.get("inputs", {})),
        *_orders(before.get("order", {}), after.get("order", {})),
    )


def column_changes(table: Mapping[str, str], contract: Contract) -> tuple[ContractChange, ...]:
    """Return the differences between the columns of a table on disk and today's contract.

    Args:
        table: type of every declared column that the table has, by name, in the contract's words.
    """
    now = {column.name: [column.type, column.nullable] for column in contract.columns}
    # A Delta table does not say which nulls its contract allowed.
    before = {name: [type_, now.get(name, [type_, True])[1]] for name, type_ in table.items()}
    changes = _columns(before, now)
    if contract.source is None:
        return tuple(changes)
    return tuple(change if change.needs == "any days" else replace(change, needs="another table") for change in changes)


def _columns(before: Mapping[str, list[Any]], after: Mapping[str, list[Any]]) -> list[ContractChange]:
    added = {name: spec for name, spec in after.items() if name not in before}
    dropped = {name: spec for name, spec in before.items() if name not in after}
    changes: list[ContractChange] = []
    for old, spec in list(dropped.items()):
        # One column gone and one of its type come, and no more of either: a new name rather than two changes.
        if [old] == [n for n, s in dropped.items() if s[0] == spec[0]] and len(
            new := [n for n, s in added.items() if s[0] == spec[0]]
        ) == 1:
            changes.append(ContractChange(f"column {old!r} renamed to {new[0]!r}", compatible=False, needs="all days"))
            del dropped[old], added[new[0]]
    changes += [ContractChange(f"column {name!r} dropped", compatible=False, needs="all days") for name in dropped]
    for name, (type_, nullable) in added.items():
        what = f"column {name!r} ({type_}{'' if nullable else ', no nulls'}) added"
        changes.append(ContractChange(what, compatible=nullable, needs="any days" if nullable else "all days"))
    for name in before.keys() & after.keys():
        (old_type, old_nulls), (new_type, new_nulls) = before[name], after[name]
        if old_type != new_type:
            wider = is_wider(new_type, old_type)
            what = f"column {name!r} {'widened' if wider else 'retyped'} from {old_type} to {new_type}"
            changes.append(ContractChange(what, compatible=wider, needs="all days"))
        elif old_nulls != new_nulls:
            what = f"column {name!r} {'may' if new_nulls else 'may not'} be null now"
            changes.append(ContractChange(what, compatible=new_nulls))
    return sorted((replace(change, is_of_column=True) for change in changes), key=lambda change: change.what)


def is_wider(new: str, old: str) -> bool:
    """Return whether a type holds every value of another one exactly, by the contract's type names."""
    if old == "int":
        return new in ("long", "double")
    before, after = digits_of(old), digits_of(new)
    if before is None or after is None:
        return False
    (digits, scale), (new_digits, new_scale) = before, after
    return new_scale >= scale and new_digits - new_scale >= digits - scale and new != old


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


def _orders(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ContractChange]:
    """Yield changes of the keys and the order of input rows.

    Raw rows record which of their columns ordered them at delivery; the compared distance and the rest of the order can
    change.
    """
    for table in sorted(before.keys() | after.keys()):
        had, has = before.get(table, {}), after.get(table, {})
        for part in sorted(had.keys() | has.keys()):
            # That raw days are marked by snapshots without a row of them, arrivals of before do not make up for.
            is_kept = part in ("times", "day_zone") or "table" in (had.get(part), has.get(part))
            is_kept = is_kept or (part not in _OF_READING and part in had and part in has)
            kept = table.startswith("raw.") and is_kept and bool(had) and bool(has)
            for change in _named("order", *({f"{table} {part}": of[part]} if part in of else {} for of in (had, has))):
                yield replace(change, needs="another table") if kept else change


def _whole(noun: str, before: Any, after: Any, shown: Callable[[Any], str]) -> list[ContractChange]:
    if before == after or before is None:
        return []
    return [
        ContractChange(f"{noun} changed from {shown(before)} to {shown(after)}", compatible=False, needs="all days")
    ]


def _versions(source: Contract) -> str:
    """Return what orders versions of a key that are equal in the declared columns, for a person."""
    assert source.source is not None
    declared = {None: "name", "name": "name", "modified": "time of change"}
    files = f"file by {declared.get(source.source.order, source.source.order)}"
    resent = "file sent again counts anew" if source.source.resent == "anew" else "file sent again keeps its place"
    return f"arrival date, void, {files}, row; {resent}"


def _files(source: Contract) -> dict[str, Any]:
    """Return how a raw table reads its files, as far as its contract declares that."""
    assert source.source is not None
    csv = source.source.csv
    of_files = declared_parts(csv, "nulls", "decimal", "thousands") | csv.dialect if csv else {}
    # Written as no column's name can be.
    parts = {"CSV": of_files, "JSON": declared_parts(source.source, "records")}
    parts |= {each.name: declared_parts(each, "source_name", "path", "pattern", "nulls") for each in source.columns}
    return {name: part for name, part in parts.items() if part}


def _listed(names: list[str]) -> str:
    return f"({', '.join(names)})"


def _rule(rule: Rule) -> str:
    text = f"{rule.kind.text} where {rule.where}" if rule.where.strip() else rule.kind.text
    return text if rule.breach == "skip" else f"{text}, a breach takes the key back"


def _judged(rule: Rule) -> str:
    """Return what refuses a day or warns of it; what sets rows aside is among the rules."""
    what = "rows in quarantine" if rule.quarantines else f"{rule.severity} unless {_rule(rule)}"
    return f"{what}, at most {rule.allowed}"


def _order(catalogue: Catalogue, contract: Contract) -> dict[str, dict[str, Any]]:
    """Return keys and order of input rows: for silver those of its raw tables, for gold of its as-of inputs."""
    order: dict[str, dict[str, Any]] = {}
    for read in contract.inputs:
        source = catalogue[read.table]
        if source.layer == "raw":
            order[read.table] = {
                "key": list(source.key),
                "event_time": source.event_time,
                "updated_at": list(source.versioned_by) if len(source.versioned_by) > 1 else source.updated_at,
                "versions": _versions(source),
                "voided": source.voided,
                "moves_within_days": source.moves_within_days,
            }
            if source.source is not None and source.source.replaces:
                order[read.table]["replaces"] = source.source.replaces
            if times := {c.name: c.zone or c.epoch for c in source.columns if c.zone or c.epoch}:
                order[read.table]["times"] = times
            if source.day_zone:
                order[read.table]["day_zone"] = source.day_zone
            if files := _files(source):
                order[read.table]["files"] = files
        elif isinstance(read.window, AsOf):
            effective = catalogue[source.inputs[0].table].event_time
            order[read.table] = {"key": list(source.key), "effective": effective}
    return order
