"""The contract's promises and the conservation of rows: what they find always blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.quality.findings import Finding
from platform_assets.quality.masking import Masking

Keys = Sequence[Sequence[object]]
"""A few keys of rows, in order."""


@dataclass(frozen=True)
class RowBalance:
    """What became of the raw rows of one day: `raw == kept + superseded + voided + quarantined + withdrawn`.

    Args:
        raw: rows delivered, tombstones not counted.
        kept: rows in silver.
        superseded: rows with a newer version of their key, on this day or another.
        voided: rows that withdrew their key.
        quarantined: rows that broke a rule.
        withdrawn: rows of arrivals that were taken back.
    """

    raw: int
    kept: int
    superseded: int
    voided: int
    quarantined: int
    withdrawn: int = 0

    def __str__(self) -> str:
        return (
            f"{self.raw:,} raw rows = {self.kept:,} kept + {self.superseded:,} superseded + {self.voided:,} voided + "
            f"{self.quarantined:,} quarantined" + (f" + {self.withdrawn:,} withdrawn" if self.withdrawn else "")
        )


def contract_findings(
    contract: Contract,
    day: date,
    nulls: Mapping[str, int],
    repeated: int,
    masking: Masking,
    *,
    without: Mapping[str, Keys] | None = None,
    twice: Keys = (),
) -> tuple[Finding, ...]:
    """Nulls where the contract allows none, and keys that more than one row has.

    Args:
        nulls: rows without a value, by column that may have none.
        without: a few keys of the rows without a value, by column.
        twice: a few of the keys of more than one row.
    """
    findings: list[Finding] = []
    for column, count in nulls.items():
        examples = tuple(masking.shown_key(contract, contract.row_key, key) for key in (without or {}).get(column, ()))
        findings.append(
            Finding(
                check="contract",
                day=day,
                severity="block",
                message=f"{contract.name} on {day}: {_rows(count)} without {column}, which may not be null"
                + _first(examples),
                expected=f"a value of {column} in every row",
                actual=f"{_rows(count)} without",
                examples=examples,
                numbers={f"rows_without_{column}": count},
            )
        )
    if repeated:
        key = ", ".join(contract.row_key)
        keys = f"{repeated:,} key{'' if repeated == 1 else 's'} ({key}) with more than one row"
        examples = tuple(masking.shown_key(contract, contract.row_key, values) for values in twice)
        findings.append(
            Finding(
                check="contract",
                day=day,
                severity="block",
                message=f"{contract.name} on {day}: {keys}{_first(examples)}",
                expected=f"one row per key ({key})",
                actual=keys,
                examples=examples,
                numbers={"repeated_keys": repeated},
            )
        )
    return tuple(findings)


def tie_finding(contract: Contract, day: date, root: date) -> Finding:
    """Return a day in itself right that must not be published without another one."""
    return Finding(
        check="conservation",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: records moved between this day and {root}, which is held; published alone, "
        "they would be counted twice or not at all",
        expected=f"{root} published together with it",
        actual=f"{root} held",
    )


def conservation_findings(
    contract: Contract,
    day: date,
    row_balance: RowBalance,
    masking: Masking,
    *,
    expected: int,
    raw_recorded: int,
    quarantine_staged: int,
    missing: Keys = (),
    extra: Keys = (),
) -> tuple[Finding, ...]:
    """Return rows lost or won between raw and silver.

    Args:
        row_balance: what became of the rows, `kept` being what was really staged.
        expected: rows that must stay, counted from the keys alone.
        raw_recorded: rows the manifests say the raw day has.
        quarantine_staged: rows really staged for quarantine.
        missing: a few keys that should have stayed and are not there.
        extra: a few keys that are there and should not be.
    """
    keys = [f"lost: {masking.shown_key(contract, contract.key, key)}" for key in missing]
    keys += [f"not expected: {masking.shown_key(contract, contract.key, key)}" for key in extra]
    comparisons = (
        ("raw rows read", row_balance.raw, "recorded at ingest", raw_recorded, ()),
        ("rows staged", row_balance.kept, "keys that stay", expected, tuple(keys)),
        ("rows staged for quarantine", quarantine_staged, "rows that broke a rule", row_balance.quarantined, ()),
    )
    return tuple(
        Finding(
            check="conservation",
            day=day,
            severity="block",
            message=f"{contract.name} on {day}: {counted:,} {what}, but {wanted:,} {against}{_first(examples)}",
            expected=f"{wanted:,} {against}",
            actual=f"{counted:,} {what}",
            examples=examples,
            numbers={what.replace(" ", "_"): counted, against.replace(" ", "_"): wanted},
        )
        for what, counted, against, wanted, examples in comparisons
        if counted != wanted
    )


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _first(examples: Sequence[str]) -> str:
    return f"; first {examples[0]}" if examples else ""
