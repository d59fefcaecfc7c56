"""Findings and counts about a day, as values that gates, check results and reports share.

Sensitive values are masked for people: equal values have equal masks.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from statistics import quantiles
from typing import Literal

from platform_assets.contracts import Contract, Severity
from platform_assets.records.history import delivered_rows
from platform_assets.records.manifest import Warned

Check = Literal["contract", "conservation", "reconciliation", "rules", "volume", "settled", "freshness"]
Outcome = Literal["passed", "not judged", "warned", "blocked"]
Numbers = Mapping[str, int | Decimal]

ACCEPTABLE: frozenset[Check] = frozenset({"reconciliation", "rules", "settled", "volume"})
"""Checks whose findings a person may accept: what they find can be true. A broken promise or a lost row cannot."""

ACCEPTED = "accepted_"
"""Before the name of a check: the figure of a published day that says how many of its findings a person accepted."""

FELL_FROM = "fell_from"
"""Figure of a published day that was warned of for a loss of rows: how many it had before."""


def accepted_by_hand(figures: Mapping[str, int]) -> tuple[str, ...]:
    """Return the checks whose findings on a published day a person accepted."""
    return tuple(name.removeprefix(ACCEPTED) for name in figures if name.startswith(ACCEPTED))


@dataclass(frozen=True)
class Finding:
    """A broken promise, or something unusual.

    Args:
        day: the day; for a finding about many days, the first of them.
        message: one sentence for a person: table, day, what was found and what was expected.
        examples: a few cases to look at, sensitive values masked.
        accepted: whether it would hold the day, had a person not accepted it.
    """

    check: Check
    day: date
    severity: Severity
    message: str
    expected: str
    actual: str
    examples: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=dict)
    accepted: bool = False

    @property
    def blocks(self) -> bool:
        """Return whether it holds the day."""
        return self.severity == "block"


@dataclass(frozen=True)
class Checked:
    """Result of one check for one day.

    Args:
        sentence: what was compared, and the result, for a person.
        judged: whether the check could judge; there may be too little history.
    """

    check: Check
    sentence: str
    numbers: Numbers = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    judged: bool = True
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """Return whether the day passed, and if not, whether it is published nevertheless."""
        if not self.findings:
            return "passed" if self.judged else "not judged"
        return "blocked" if any(finding.blocks for finding in self.findings) else "warned"

    def failing(self, finding: Finding) -> Checked:
        """Return the result with one more finding."""
        findings = (*self.findings, finding)
        return replace(self, sentence=_joined(findings), findings=findings)

    def accepted_by_hand(self) -> Checked:
        """Return the result with every blocking finding turned into an accepted warning."""
        findings = tuple(
            replace(finding, severity="warn", message=f"{finding.message}; accepted by hand", accepted=True)
            if finding.blocks
            else finding
            for finding in self.findings
        )
        return replace(self, sentence=_joined(findings), findings=findings) if findings != self.findings else self

    @property
    def accepted(self) -> int:
        """Return how many of its findings would have held the day, had a person not accepted them."""
        return sum(finding.accepted for finding in self.findings)


@dataclass(frozen=True)
class DayChecks:
    """Results of all checks for one staged day: one for each of `checks_before_publication`, in that order."""

    rows: int
    checks: tuple[Checked, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, blocking or not."""
        return tuple(finding for checked in self.checks for finding in checked.findings)

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Return the blocking findings; the first one is the reason of the hold."""
        return tuple(finding for finding in self.findings if finding.blocks)

    def failing(self, finding: Finding) -> DayChecks:
        """Return the results with one more finding."""
        return replace(
            self,
            checks=tuple(check.failing(finding) if check.check == finding.check else check for check in self.checks),
        )

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Return the findings of a published day: not blocking and not accepted."""
        return tuple(
            Warned(gate=finding.check, found=finding.actual, expected=finding.expected)
            for finding in self.findings
            if not (finding.blocks or finding.accepted)
        )

    @property
    def figures(self) -> dict[str, int]:
        """Return the figures that a published day keeps: accepted findings, as `accepted_<check>`, and lost rows.

        With further figures that checks record.
        """
        accepted = {f"{ACCEPTED}{checked.check}": checked.accepted for checked in self.checks if checked.accepted}
        fell = [int(finding.numbers[FELL_FROM]) for finding in self.findings if FELL_FROM in finding.numbers]
        kept = {name: figure for checked in self.checks for name, figure in checked.figures.items()}
        return accepted | ({FELL_FROM: max(fell)} if fell else {}) | kept


def checked(
    check: Check, findings: Collection[Finding], passed: str, numbers: Numbers, *, judged: bool = True
) -> Checked:
    """Return the result of a check for a day.

    Args:
        passed: sentence if it found nothing.
        numbers: its figures; those of the findings are added.
    """
    figures = {name: value for finding in findings for name, value in finding.numbers.items()}
    sentence = _joined(tuple(findings)) if findings else passed
    return Checked(check, sentence, {**figures, **numbers}, tuple(findings), judged=judged)


def checks_before_publication(contract: Contract) -> tuple[Check, ...]:
    """Return the checks that every staged day of a silver or gold table has to pass, most serious first."""
    checks: dict[Check, bool] = {
        "contract": True,
        "conservation": contract.layer == "silver",
        "reconciliation": bool(contract.reconciles),
        "rules": any(rule.allowed is not None for rule in contract.rules),
        "volume": True,
        "settled": bool(contract.settled),
    }
    return tuple(check for check, applies in checks.items() if applies)


def _joined(findings: Sequence[Finding]) -> str:
    return "; ".join(finding.message for finding in findings)


_HEX_DIGITS = 8


@dataclass(frozen=True)
class Masking:
    """Masks of an installation: a keyed hash, so that hashing all possible values does not reveal one.

    The key is `secret.installation_secret` and never shown.
    """

    secret: bytes = field(repr=False)

    def masked(self, value: object) -> str:
        """Return a mask that equal values share, in every run of an installation; a null stays null.

        It is as secret as the key, which lets its owner hash all possible values, too.
        """
        if value is None:
            return "null"
        return "#" + hmac.digest(self.secret, str(value).encode(), "sha256").hex()[:_HEX_DIGITS]

    def shown_key(self, contract: Contract, names: Sequence[str], key: Sequence[object]) -> str:
        """Return a key of a table as `store_id 5, department MEAT`, sensitive values masked."""
        sensitive = {column.name for column in contract.columns if column.sensitive}
        return ", ".join(
            f"{name} {self.masked(value) if name in sensitive or value is None else value}"
            for name, value in zip(names, key, strict=True)
        )


LAG = "lag_days"
"""The figure of a raw day that says by how many days its rows arrived after it, added up; of those ahead of it none.

Days of before this was counted do not have it.
"""

MISMATCHES = "mismatches"
"""The figure of a day that says of how many keys it has other amounts than the tables that it reconciles with."""


def day_metrics(rows: int, figures: Mapping[str, int]) -> dict[str, float]:
    """Return the metrics of a day that its figures allow.

    Returns:
        `duplicates_per_1000`: rows beyond the first of their key, of 1,000 delivered rows; `quarantined_share` of the
        delivered rows; `lag_of_arrival_days`: how many days after their day rows arrived, on average; `mismatches`.
    """
    metrics: dict[str, float] = {name: float(figures[name]) for name in (MISMATCHES,) if name in figures}
    if "raw" in figures and "keys" in figures:
        delivered = figures["raw"] - figures.get("withdrawn", 0) - figures.get("replaced", 0)
        metrics["duplicates_per_1000"] = share(delivered - figures["keys"], delivered, 1000)
        metrics["quarantined_share"] = share(figures.get("quarantined", 0), delivered)
    if LAG in figures:
        metrics["lag_of_arrival_days"] = share(figures[LAG], delivered_rows(rows, figures))
    return metrics


def share(part: int, whole: int, of: int = 1) -> float:
    """Return a share of a whole, times `of`; None for a whole of 0."""
    return round(of * part / whole, 6) if whole > 0 else 0.0


def percentile_95(values: Sequence[float]) -> float | None:
    """Return the value that 95 of 100 do not exceed; None without any."""
    if len(values) < 2:
        return values[0] if values else None
    return round(quantiles(values, n=20, method="inclusive")[-1], 3)
