"""The audit of a lake: the chain, then every table through all releases, then its files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import newest_release, published
from platform_assets.operations.audit.chain import ChainAudit, ChainHead
from platform_assets.operations.audit.faults import Findings, Scope
from platform_assets.operations.audit.files import look_at_files, read_contents
from platform_assets.operations.audit.tables import TableAudit
from platform_assets.progress import OnProgress, Progress


@dataclass(frozen=True)
class Audited:
    """What is left of an audit besides its findings.

    Args:
        release: the newest, up to which everything was looked at; -1 without any.
        chain: where the chain stands.
        chains: the chain up to every release that can be read.
        tables: every table that was looked at, followed up to that release.
    """

    release: int
    chain: ChainHead
    chains: Mapping[int, str]
    tables: Mapping[str, TableAudit]


def audit(lake: Lake, scope: Scope, findings: Findings, progress: OnProgress) -> Audited:
    """Look at a lake; readers and publishers are not disturbed, and what they do meanwhile is not looked at.

    Args:
        scope: how much of it.
        findings: where faults are written down.
        progress: told what is looked at.
    """
    newest = newest_release(lake)
    chain = ChainAudit(lake, newest, findings)
    tables: dict[str, TableAudit] = {}
    for shown in chain.walk(parse=not scope.fast):
        for name in {*shown.versions, *tables}:
            if scope.has_table(name):
                tables.setdefault(name, TableAudit(lake, name, scope, findings)).follow(shown)
        progress(Progress("following", "releases", shown.number + 1, newest + 1, "release"))
    begun: dict[str, str] = {}
    for name, table in sorted(tables.items()):
        progress(Progress("checking", name))
        begun |= dict.fromkeys(table.look_beyond(), name)
        if table.is_whole and not scope.fast:
            table.look_at_checkpoint()
            look_at_files(table)
        days = [content for day, content in table.recorded.items() if table.scope.has_day(day)]
        rows = sum(content.rows for content in days) if days else None
        progress(Progress("checking", name, len(days), len(days), rows=rows, finished=True))
    if not scope.fast and scope.read_bytes != 0:
        whole = [table for _, table in sorted(tables.items()) if table.is_whole]
        if left := read_contents(whole, scope.read_bytes, datetime.now(UTC).toordinal(), progress):
            findings.notes.append(left)
    for publication in sorted(begun.keys() - _released_after(lake, newest)):
        findings.notes.append(
            f"Publication {publication} has begun to change {begun[publication]} and is not released: if its process "
            "is dead, whoever publishes next finishes it."
        )
    return Audited(newest, chain.head, chain.chains, tables)


def _released_after(lake: Lake, number: int) -> set[str]:
    """Publications released since the audit began; what is wrong with their releases, it has said."""
    released: set[str] = set()
    with suppress(LakeError):
        released.update(publication for _, publication in published(lake, after=number))
    return released
