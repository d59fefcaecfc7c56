"""Name the points at which a test can kill this process, as if the machine had lost power.

A point is named once in the code and once here. Nothing of it is for users; it costs a look into the environment.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Mapping

VARIABLE = "PLATFORM_FAILPOINT"
"""Names the point to die at; `point:3` dies when it is passed for the third time."""

POINTS: Mapping[str, tuple[str, ...]] = {
    "ingest": (
        "ingest.locked",
        "ingest.listed",
        "ingest.staged",
        "ingest.set_aside",
        "ingest.compared",
        "ingest.counted",
        "ingest.taken",
        "ingest.quiet_days",
        "ingest.done",
    ),
    "stage": (
        "stage.opened",
        "stage.written",
        "stage.logged",
        "stage.profiled",
        "stage.quarantined",
        "stage.before_discard",
        "stage.after_discard",
        "stage.step_done",
        "stage.before_publish",
    ),
    "plan": ("plan.staged", "plan.step_done", "plan.publishing", "plan.published"),
    "circuit": ("circuit.verdict", "circuit.decided"),
    "gate": (
        "gate.staged",
        "gate.judged",
        "gate.decided",
        "gate.before_holds",
        "gate.held",
        "gate.lifted",
    ),
    "manifest": (
        "publish.before_manifest",
        "write.before_rename",
        "publish.written",
        "publish.after_manifest",
    ),
    "table commit": (
        "publish.locked",
        "publish.checked",
        "publish.before_table",
        "replace.before_commit",
        "replace.after_commit",
        "replace.synced",
        "publish.after_table",
    ),
    "release": (
        "publish.before_release",
        "release.after_file",
        "release.after_commit",
        "publish.after_release",
    ),
    "ledger": (
        "ledger.before_record",
        "ledger.recording",
        "ledger.recorded",
        "ledger.behind",
        "ledger.holding",
    ),
    "move": (
        "move.compared",
        "move.copied",
        "move.named",
        "move.noted",
    ),
    "rollback": (
        "rollback.planned",
        "rollback.published",
    ),
    "compaction": (
        "compact.planned",
        "compact.locked",
        "compact.staged",
        "compact.counted",
        "compact.published",
    ),
    "checkpoint": (
        "checkpoint.before",
        "checkpoint.written",
        "checkpoint.synced",
    ),
    "deletion": (
        "delete.locked",
        "delete.before_horizon",
        "delete.after_horizon",
        "delete.after_file",
        "delete.before_folder",
        "delete.after_folder",
        "delete.done",
    ),
    "outbox": (
        "outbox.taken",
        "outbox.sent",
        "outbox.settled",
    ),
    "recovery": (
        "recover.before_torn",
        "recover.after_torn",
        "recover.found",
        "recover.finished",
    ),
}
"""Every point by the phase of the work it lies in, about in the order in which they are passed."""

PASSED: Counter[str] = Counter()
"""How often this process has passed each point, so that a test knows which can be died at."""


def failpoint(name: str) -> None:
    """Kill this process, without any clean-up, if the environment names this place; else do nothing."""
    PASSED[name] += 1
    if os.environ.get(VARIABLE) in (name, f"{name}:{PASSED[name]}"):
        os.kill(os.getpid(), signal.SIGKILL)
