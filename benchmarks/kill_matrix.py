"""Every fail point, several seeds: killed, run again, compared. Prints the table of docs/reliability.md.

python -m benchmarks.kill_matrix --seeds 5 --spark-seeds 5 --reads 40 --out /tmp/kills
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from platform_assets.compute.session import create_session, stop_session
from platform_assets.failpoints import POINTS
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.conftest import SMALL_DATA
from platform_assets_tests.promises.kills.harness import PHASE, Killed, Rehearsal, kill, rehearse
from platform_assets_tests.promises.kills.paper import PAPER
from platform_assets_tests.promises.kills.reader import Reader
from platform_assets_tests.promises.kills.sales import SALES
from platform_assets_tests.promises.kills.story import Jvm


def main() -> None:
    asked = _arguments()
    jars = os.environ.pop("PLATFORM_JARS", project_root() / ".platform" / "jars")
    asked.out.mkdir(parents=True, exist_ok=True)
    reader, spark = Reader(), None
    started = time.monotonic()
    if asked.spark_seeds:
        settings = load_settings(state=asked.out / "spark", jars=jars, spark_driver_memory="2g", spark_conf=SMALL_DATA)
        spark = create_session(settings, record_classes=False)
    found: list[Killed] = []
    with (asked.out / "kills.jsonl").open("a", encoding="utf-8") as log:
        for seed in range(asked.first, max(asked.seeds, asked.spark_seeds)):
            for one in _of_seed(seed, reader, spark if seed < asked.spark_seeds else None, asked.reads):
                found.append(one)
                print(json.dumps(asdict(one)), file=log, flush=True)
                came = "ok" if not one.problems else "; ".join(one.problems)
                print(f"{time.monotonic() - started:6.0f} s  {seed}  {one.point}  {one.command}: {came}", flush=True)
    reader.close()
    if spark is not None:
        stop_session(spark)
    text = "\n".join(table(found))
    (asked.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of what takes no session")
    parser.add_argument("--spark-seeds", type=int, default=5, help="seeds of what takes one")
    parser.add_argument("--reads", type=int, default=40, help="looks of the reader at each kill, at least")
    parser.add_argument("--out", type=Path, required=True, help="folder for what came of it")
    return parser.parse_args()


def _of_seed(seed: int, reader: Reader, spark: SparkSession | None, reads: int) -> Iterator[Killed]:
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        rehearsals = [rehearse(PAPER, seed, folder / "paper", None)]
        if spark is not None:
            rehearsals.append(rehearse(SALES, seed, folder / "sales", Jvm.of(spark)))
        for number, point in enumerate(PHASE):
            if any(point in one.passed for one in rehearsals):
                yield kill(_turn(rehearsals, point, number + seed), point, reader, folder / "killed", reads)


def _turn(rehearsals: Sequence[Rehearsal], point: str, number: int) -> list[Rehearsal]:
    """The stories take turns where both pass a point."""
    passing = [one for one in rehearsals if point in one.passed]
    return [passing[number % len(passing)]]


def table(found: Sequence[Killed]) -> Iterator[str]:
    """One row for each point."""
    yield "| phase | point | commands killed | kills | as undisturbed | reads | mixed |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for phase, points in POINTS.items():
        for point in points:
            those = [one for one in found if one.point == point]
            commands = ", ".join(sorted({one.command for one in those}))
            good = sum(not one.problems for one in those)
            reads, mixed = (sum(getattr(one.watched, name) for one in those) for name in ("reads", "count"))
            yield f"| {phase} | `{point}` | {commands} | {len(those)} | {good} | {reads:,} | {mixed} |"
    reads, mixed = (sum(getattr(one.watched, name) for one in found) for name in ("reads", "count"))
    good = sum(not one.problems for one in found)
    yield f"| all | {sum(map(len, POINTS.values()))} points | | {len(found)} | {good} | {reads:,} | {mixed} |"


if __name__ == "__main__":
    main()
