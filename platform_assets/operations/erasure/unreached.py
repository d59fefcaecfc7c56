"""What an erasure cannot reach, named so that somebody can: deliveries, bounds in logs, plans of single keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from platform_assets.engine.erasures import made
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.schema import schema_at, types_in
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_bytes, parsed, published
from platform_assets.operations.erasure.places import Place, Reach
from platform_assets.operations.plan_record import all_records
from platform_assets.records.erased_keys import canonical
from platform_assets.sources.listing import landing_area

_BOUND = 32
"""Characters of a text that statistics have; of the greatest, one more follows where it was cut."""

ELSEWHERE = (
    "generations of backups from before: the next `backup` has none of the rows; remove older ones with `--keep 1`",
    "exports, and what readers made of the tables in other systems",
    "Dagster's storage and logs, where values of columns that are not `sensitive` stand in examples and previews",
)
"""What no installation knows of itself."""


@dataclass(frozen=True)
class Unreached:
    """Copies that stay.

    Args:
        landing: files below the landing root that brought such rows and still lie there.
        bounds: files whose statistics in logs and manifests, which stay for ever, have the value as the smallest or
            the greatest of a column, by table.
        undeclared: tables of the lake with such columns that no domain declares.
        plans: whose files, kept with what became of them, name the value among the keys that they are about.
        scopes: publications, which stay for ever, of which a manifest says that they computed rows of the value alone.
    """

    landing: tuple[str, ...] = ()
    bounds: tuple[tuple[str, int], ...] = ()
    undeclared: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


def unreached(platform: Platform, where: Reach, secret: bytes) -> Unreached:
    """What stays of a key, as far as the installation knows."""
    keys = {place.table: place.hashes(secret) for place in where.places}
    brought: set[str] = set()
    for _, erasures in made(platform):
        for erasure in erasures:
            if keys.get(erasure.table) == erasure.key:
                brought |= erasure.arrivals.keys()
    for contract in where.raw:
        known = {arrival.path: arrival for arrival in platform.ledger.arrivals(contract.name)}
        # What a person approved later came in the file that it waited from.
        brought |= {known[path].origin or path for path in brought & known.keys()}
        brought |= {path for path, arrival in known.items() if arrival.erased}
    area = landing_area(platform.settings)
    landing = tuple(sorted(path for path in brought if not area.has_gone(path)))
    bounds = ((place.table, _bounded(platform.lake, place)) for place in where.places)
    return Unreached(
        landing,
        tuple((table, files) for table, files in bounds if files),
        _undeclared(platform, where),
        plans=tuple(
            record.name for record in all_records(platform.lake)[0] if is_among(record.file.only or {}, where.places)
        ),
        scopes=tuple(_scoped(platform.lake, where.places)),
    )


def _scoped(lake: Lake, places: Collection[Place]) -> Iterator[str]:
    tables = {place.table for place in places}
    for _, publication in published(lake):
        content = manifest_bytes(lake, publication)
        if b'"scope":{' not in content:  # as of most, which need not be taken apart
            continue
        changes = [change for change in parsed(lake, publication, content).tables if change.table in tables]
        scopes = (day.scope for change in changes for day in change.days.values() if day.scope)
        if any(is_among(scope.keys, places) for scope in scopes):
            yield publication


def is_among(keys: Mapping[str, Collection[str]], places: Collection[Place]) -> bool:
    """Whether one of the values of some fields is that of a key, however it is written."""
    return any(
        canonical(text, place.types[field]) == value
        for place in places
        for field, value in place.values.items()
        for text in keys.get(field, ())
    )


def _undeclared(platform: Platform, where: Reach) -> tuple[str, ...]:
    fields = [set(place.values) for place in where.places if not place.is_payload]
    found = []
    for table, version in platform.current_release().versions.items():
        if table not in platform.catalogue.names and table.startswith(("raw.", "silver.", "gold.")):
            columns = types_in(schema_at(platform.lake.table_path(table), version)).keys()
            found += [table] if any(named <= columns for named in fields) else []
    return tuple(found)


def _bounded(lake: Lake, place: Place) -> int:
    """How many files of a table ever had a value of the key as a bound."""
    path = lake.table_path(place.table)
    return sum(
        any(
            is_told_by(str(bound), value, is_payload=place.is_payload)
            for stats in [json.loads(added)]
            for side in ("minValues", "maxValues")
            for field, value in place.values.items()
            for bound in [stats.get(side, {}).get("_payload" if place.is_payload else field)]
        )
        for version in range(commits.head_version(path) + 1)
        for added in _stats(lake, place.table, version)
    )


def is_told_by(bound: str, value: str, *, is_payload: bool = False) -> bool:
    """Whether a bound is a value, or what Delta keeps of one that is a long text; of kept rows, whether it is in it."""
    is_cut = len(value) > _BOUND and bound[:_BOUND] == value[:_BOUND]
    return bound == value or is_cut or (is_payload and value in bound)


def _stats(lake: Lake, table: str, version: int) -> Iterator[str]:
    for action in commits.actions(lake.table_path(table), version):
        if "add" in action and (stats := action["add"].get("stats")):
            yield stats
