"""People's decisions: their chain is as it was written, and has all that publications carried out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from platform_assets.ledger.decisions import of_publication
from platform_assets.operations.audit.faults import Findings
from platform_assets.records.chain import Entry, breaks
from platform_assets.records.decisions import Decision, LiftDecision, PublicationDecision, from_content
from platform_assets.records.history import PublicationRecord

_COMPARE = "Find out who writes to the ledger, and compare its table ledger_decisions with a backup from before."


class DecisionAudit:
    """Looks at the chain of decisions: first by itself, then beside the manifests, which count where the two differ.

    Args:
        entries: all of it, by number.
        findings: where faults are written down.
    """

    def __init__(self, entries: Sequence[Entry], findings: Findings) -> None:
        self._findings = findings
        self._found: dict[int, Decision] = {}
        for entry in entries:
            findings.seen["decisions"] += 1
            try:
                self._found[entry.number] = from_content(entry.content)
            except ValueError as error:
                if entry.is_whole:  # what was changed is told as such
                    self._fault(f"Decision {entry.number} is none: {error}.")
        for broken in breaks(entries):
            self._fault(f"{self._named(broken.number)} {broken.what}.")
        found = self._found.items()
        self._of = {each.publication: number for number, each in found if isinstance(each, PublicationDecision)}

    def compare(self, record: PublicationRecord) -> None:
        """Hold the chain against a manifest.

        Args:
            record: what the ledger has to keep of a publication that it knows.
        """
        wanted, number = of_publication(record), self._of.get(record.publication)
        if wanted is None:
            return
        if number is None:
            self._fault(
                f"The chain of decisions lacks the {wanted.kind} by {wanted.who} that publication "
                f"{record.publication} (release {record.release}) carried out.",
                f"{_COMPARE} `platform-assets ledger rebuild` enters it anew, from the manifest.",
            )
        elif self._found[number] != wanted:
            self._fault(f"{self._named(number)} says something else than the manifest of {record.publication}.")

    def note_unknown(self, released: Collection[str]) -> None:
        """Mention decisions of publications that the lake does not have.

        Args:
            released: publications that it has.
        """
        for number, decision in self._found.items():
            if isinstance(decision, PublicationDecision | LiftDecision) and decision.publication not in released:
                self._findings.notes.append(
                    f"{self._named(number)} was carried out by publication {decision.publication}, which the lake does "
                    "not have: an older lake was put back since, or nobody decided so."
                )

    def _fault(self, what: str, todo: str = _COMPARE) -> None:
        self._findings.fault("decisions", what, todo)

    def _named(self, number: int) -> str:
        decision = self._found.get(number)
        if decision is None:
            return f"Decision {number}"
        return f"Decision {number} ({decision.kind} by {decision.who}, {decision.created_at:%Y-%m-%d %H:%M} UTC)"
