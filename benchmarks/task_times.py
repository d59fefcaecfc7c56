"""What Spark's tasks took of the processors, from its event log: it does not depend on who else is at work."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TaskTimes:
    """Of one session.

    Args:
        cpu_s: processor time of all tasks.
        least_s: that they take on so many cores with nobody else at work, one stage after the other: a stage ends no
            sooner than its longest task.
        longest_s: of any task.
        spilled: bytes that did not fit the memory of a task.
    """

    cpu_s: float
    least_s: float
    longest_s: float
    spilled: int


def event_log(folder: Path) -> Mapping[str, str]:
    """Settings by which a session writes its events to a folder, as plain text."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def task_times(folder: Path, cores: int) -> TaskTimes:
    """What the newest session that wrote there says."""
    stages: defaultdict[int, list[float]] = defaultdict(list)
    spilled = 0
    for line in max(folder.iterdir(), key=lambda file: file.stat().st_mtime).read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            metrics = event.get("Task Metrics") or {}
            stages[event["Stage ID"]].append(metrics.get("Executor CPU Time", 0) / 1e9)
            spilled += metrics.get("Disk Bytes Spilled", 0)
    return TaskTimes(
        cpu_s=sum(map(sum, stages.values())),
        least_s=sum(max(sum(tasks) / cores, *tasks) for tasks in stages.values()),
        longest_s=max(map(max, stages.values()), default=0.0),
        spilled=spilled,
    )
