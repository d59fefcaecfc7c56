"""The heads of both chains, to be kept elsewhere; and whether the chains that are there go through such an anchor."""

from __future__ import annotations

from collections.abc import Mapping

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import newest_release
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.audit.faults import Findings
from platform_assets.records.chain import Head, Heads


def heads_of(lake: Lake, ledger: Ledger) -> Heads:
    """Where both chains stand now; nothing is looked at besides, so it costs next to nothing."""
    newest = newest_release(lake)
    chain = commits.commit(lake.releases_path, newest).chain if newest >= 0 else ""
    return Heads(Head(newest, chain) if chain else Head(), ledger.decision_head())


def compare_heads(
    expected: Heads, releases: Mapping[int, str], decisions: Mapping[int, str] | None, findings: Findings
) -> None:
    """Whether both chains go through heads that somebody kept; what follows may have come since.

    Args:
        expected: the heads.
        releases: the chain up to each release that can be read.
        decisions: the chain up to each decision; None where the ledger cannot be read, which was told already.
        findings: where faults are written down.
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
