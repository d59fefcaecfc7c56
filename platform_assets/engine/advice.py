"""Parts of contracts that are allowed and seldom meant: `check` points them out, and nothing refuses them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.mistake import Mistake

_DELETES = re.compile(r"(?i)delete|void|tombstone|(<>|!=|\bnot\b).*'(d|del|removed?)'")
"""Looks like a rule by which deleted rows are left out."""


def advice(catalogue: Catalogue, tables: Collection[str]) -> Iterator[Mistake]:
    """Point out what of some tables lets a deleted or moved record count on."""
    for contract in catalogue:
        if contract.name not in tables or contract.layer != "silver":
            continue
        source, package = catalogue[contract.inputs[0].table], catalogue.domain_of(contract.name).transforms
        for rule in contract.quarantine_rules if source.voided is None else ():
            if rule.breach == "skip" and _DELETES.search(rule.kind.text):
                what = (
                    f"the rule {rule.name!r} of {contract.name} ({rule.kind.text}) looks as if it left out deleted "
                    "rows. A row that breaks a rule is skipped, and the older version of its key counts again."
                )
                todo = f"Declare the delete on {source.name}, as voided=\"op = 'D'\"."
                yield Mistake(what, todo, package, table=source.name, field="voided")
        if may_move(contract, catalogue) and source.moves_within_days == 0:
            time = source.event_time
            what = f"moves_within_days=0 says that no key's {time} is corrected to another day: it would count twice."
            todo = f"Set it to how far {time} can move; or add {time} to the key, if keys have a row on many days."
            yield Mistake(what, todo, package, table=source.name, field="moves_within_days")


def may_move(contract: Contract, catalogue: Catalogue) -> bool:
    """Whether a key of a silver table is to lie on one day, though its event time can be corrected.

    A key that contains the event time moves nowhere. Without `updated_at` a key may well have a row on every day.
    """
    if contract.layer != "silver":
        return False
    source = catalogue[contract.inputs[0].table]
    can_be_corrected = bool(contract.key and (source.updated_at or source.moves_within_days))
    return can_be_corrected and source.event_time not in {*source.key, *contract.key}
