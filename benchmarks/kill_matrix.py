"""Every fail point, several seeds: killed, run again, compared. Prints the table of docs/reliability.md.

python -m benchmarks.kill_matrix --kill paper sales --seeds 0 1 2 3 4 --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets_tests.support.installation import SMALL_DATA, Jvm
from platform_assets_tests.support.kills.harness import (
    OF_OTHERS,
    ON_PAPER,
    WITH_SPARK,
    Killed,
    Reader,
    Story,
    kill,
    rehearse,
)
from platform_assets_tests.support.kills.paper import PAPER
from platform_assets_tests.support.kills.points import POINTS
from platform_assets_tests.support.kills.sales import SALES

STORIES = {"paper": (PAPER, ON_PAPER), "sales": (SALES, WITH_SPARK)}


def main() -> None:
    """Append what comes of each kill to `kills.jsonl`, and print the table of all that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", nargs="+", choices=sorted(STORIES), default=[], help="nothing: only the table")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--reads", type=int, default=50, help="looks of the reader at each kill, at least")
    parser.add_argument("--out", type=Path, required=True, help="folder for what came of it")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    log = asked.out / "kills.jsonl"
    reader, started = Reader(), time.monotonic()
    for name in asked.kill:
        story, points = STORIES[name]
        with _jvm(asked.out) if story is SALES else nullcontext() as jvm:
            for seed in asked.seeds:
                for one in _kills(story, points, seed, jvm, reader, asked.reads):
                    with log.open("a", encoding="utf-8") as file:
                        print(json.dumps(asdict(one)), file=file)
                    came = "; ".join(one.problems) or "ok"
                    print(f"{time.monotonic() - started:6.0f} s  {seed} {one.point} {one.command}: {came}", flush=True)
    reader.close()
    print("\n".join(table([json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()])))


@contextmanager
def _jvm(out: Path) -> Iterator[Jvm]:
    jars = os.environ.pop("PLATFORM_JARS", project_root() / ".platform" / "jars")
    settings = load_settings(state=out / "spark", jars=jars, spark_driver_memory="2g", spark_conf=SMALL_DATA)
    spark = create_session(settings, record_classes=False)
    yield Jvm.of(spark)
    stop_session(spark)


def _kills(
    story: Story, points: Sequence[str], seed: int, jvm: Jvm | None, reader: Reader, reads: int
) -> Iterator[Killed]:
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        rehearsal = rehearse(story, seed, Path(name), jvm)
        for point in points:
            yield kill(rehearsal, point, reader, Path(name, "killed"), reads)


def table(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One row for each point."""
    yield "| phase | point | killed while | kills | as undisturbed | reads | mixed |"
    yield "| --- | --- | --- | --: | --: | --: | --: |"
    killed_in = {phase: points for phase, points in POINTS.items() if phase not in OF_OTHERS}
    for phase, points in killed_in.items():
        for point in points:
            those = [one for one in found if one["point"] == point]
            commands = ", ".join(sorted({one["command"] for one in those}))
            yield f"| {phase} | `{point}` | {commands} | {_figures(those)} |"
    yield f"| | **{sum(map(len, killed_in.values()))} points** | | {_figures(found)} |"


def _figures(those: Sequence[dict[str, Any]]) -> str:
    good = sum(not one["problems"] for one in those)
    reads, mixed = (sum(one["watched"][name] for one in those) for name in ("reads", "count"))
    return f"{len(those)} | {good} | {reads:,} | {mixed}"


if __name__ == "__main__":
    main()
