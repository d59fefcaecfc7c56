"""People's decisions: their chain is whole and has all that was carried out; the heads of chains, kept elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import newest_release
from platform_assets.ledger.decisions import of_publication
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.audit.faults import Findings
from platform_assets.records.chain import Entry, Head, Heads, breaks
from platform_assets.records.decisions import Decision, LiftDecision, PublicationDecision, from_content
from platform_assets.records.history import PublicationRecord

_COMPARE = "Find out who writes to the ledger, and compare its table ledger_decisions with a backup from before."


class DecisionAudit:
    """Looks at the chain of decisions: first by itself, then beside the manifests, which count where the two differ.

    Args:
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
        """Hold the chain against a manifest."""
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
        """Mention decisions of publications that the lake does not have."""
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


def heads_of(lake: Lake, ledger: Ledger) -> Heads:
    """Return where both chains stand now; nothing is looked at besides, so it costs next to nothing."""
    newest = newest_release(lake)
    chain = commits.commit(lake.releases_path, newest).chain if newest >= 0 else ""
    return Heads(Head(newest, chain) if chain else Head(), ledger.decision_head())


def compare_heads(
    expected: Heads, releases: Mapping[int, str], decisions: Mapping[int, str] | None, findings: Findings
) -> None:
    """Check that both chains go through heads that somebody kept; what follows may have come since.

    Args:
        decisions: the chain up to each decision; None where the ledger cannot be read, which was told already.
    """
    _compare("releases", expected.releases, releases, "lake", findings)
    if decisions is not None:
        _compare("decisions", expected.decisions, decisions, "ledger", findings)


def _compare(what: str, expected: Head, chain: Mapping[int, str], where: str, findings: Findings) -> None:
    findings.seen["anchor"] += 1
    if expected.is_in(chain):
        return
    if expected.number in chain:
        instead = f"what has that number carries {chain[expected.number] or 'no chain'}: history was rewritten since"
    elif expected.number < max(chain, default=-1):
        instead = "what has that number cannot be read"
    else:
        instead = (
            f"they end at {max(chain)}: history was cut since" if chain else "there are none: history was cut since"
        )
    findings.fault(
        "anchor",
        f"The {what} do not go through the expected head {expected}; {instead}.",
        f"If nobody put an older {where} back on purpose, or made a new one, restore it from a backup whose chain goes "
        "through that head; else look through what is there, and keep its head from now on.",
    )
