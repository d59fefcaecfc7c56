"""A small platform for tests: land a few rows, run the engine for real, look at what readers see."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, recompute_step, refresh
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.step.analysis import analysed
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.operations.opening import open_platform
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress, no_progress
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets_tests.support.installation import FIRST, JARS

Rows = list[dict[str, Any]]


def recompute(
    platform: Platform,
    spark: SparkOnDemand,
    tables: tuple[str, ...],
    days: tuple[date, ...],
    author: Author,
    progress: OnProgress = no_progress,
) -> RefreshResult:
    """Compute some days of some tables, whatever their state: raw tables ingest, the others are recomputed."""
    platform.sync()
    spark = analysed(platform, tables, spark, author.run)
    ingests: list[IngestResult] = []
    steps: list[StepResult] = []
    for contract in platform.catalogue:
        if contract.name not in tables:
            continue
        if contract.source is not None:
            ingests.append(ingest(platform, spark, contract, author, days, progress))
        else:
            steps.append(recompute_step(platform, spark, Step(contract.name, days), author, progress, force=True))
    return RefreshResult(tuple(ingests), tuple(steps))


@dataclass(frozen=True)
class World:
    """One installation in a temporary folder."""

    settings: Settings
    spark: SparkSession

    def copied_to(self, state: Path) -> Self:
        """A copy of all of it in another folder: nothing in an installation says where it lies."""
        shutil.copytree(self.settings.state, state)
        same = self.settings.model_dump(exclude={"state", "lake", "landing", "ledger_url"})
        return replace(self, settings=load_settings(state=state, **same))

    def on(self, today: str) -> Self:
        """The same installation on another day."""
        return replace(self, settings=self.settings.model_copy(update={"today": date.fromisoformat(today)}))

    @contextmanager
    def open(self) -> Iterator[Platform]:
        """The platform, as every command opens it."""
        with open_platform(self.settings) as platform:
            yield platform

    def deliver(self, folder: str, arrival: str, name: str, content: bytes | str) -> Path:
        """A file as a source leaves it: complete, and at rest for a minute."""
        target = self.settings.landing_folder / folder / arrival
        target.mkdir(parents=True, exist_ok=True)
        file = target / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        rest = file.stat().st_mtime - 60
        os.utime(file, (rest, rest))
        return file

    def deliver_rows(self, folder: str, arrival: str, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Rows as JSON lines."""
        return self.deliver(folder, arrival, name, "".join(json.dumps(row, default=str) + "\n" for row in rows))

    def refresh(self) -> RefreshResult:
        """Take what was delivered and recompute what it reaches."""
        with self.open() as platform:
            return refresh(platform, lambda: self.spark, Author("test", "a test"))

    def recompute(self, tables: Iterable[str], days: Iterable[date]) -> RefreshResult:
        """Compute days of tables whatever their state."""
        with self.open() as platform:
            return recompute(platform, lambda: self.spark, tuple(tables), tuple(days), Author("test", "a test"))

    def rows(self, table: str, day: str | None = None) -> Rows:
        """What readers see, in a fixed order."""
        days = [date.fromisoformat(day)] if day else None
        found: Rows = read_arrow(Lake.at(self.settings.lake), table, days=days).to_pylist()
        return sorted(found, key=lambda row: [str(value) for value in row.values()])

    def digests(self) -> dict[str, dict[date, str]]:
        """Digest of every loaded day of every table."""
        with self.open() as platform:
            return {
                name: {day: found.digest for day, found in platform.ledger.current_days(name).items()}
                for name in platform.catalogue.names
            }


def empty_world(state: Path, spark: SparkSession, days: int = 31, **settings: Any) -> World:
    """An installation that was just made; the first `days` of 2017 are its calendar, and today is its last day."""
    last = FIRST + timedelta(days=days - 1)
    dates = {"calendar_first": FIRST, "calendar_last": last, "today": last}
    return World(load_settings(state=state, jars=JARS, **(dates | settings)), spark)


def sale(basket: int, product: int, day: str, **changes: Any) -> dict[str, Any]:
    """One till line, good unless told otherwise."""
    row = {
        "household_id": 1,
        "store_id": 7,
        "basket_id": basket,
        "product_id": product,
        "quantity": 1,
        "sales_value": "2.50",
        "retail_disc": "0.50",
        "coupon_disc": "0.00",
        "coupon_match_disc": "0.00",
        "week": 1,
        "transaction_timestamp": f"{day}T10:00:00Z",
        "updated_at": f"{day}T10:05:00Z",
        "voided": False,
    }
    return row | changes


def product(number: int, effective: str, department: str, **changes: Any) -> dict[str, Any]:
    """One product's attributes from a day on."""
    row = {
        "product_id": number,
        "effective_date": effective,
        "manufacturer_id": 1,
        "department": department,
        "brand": "National",
        "product_category": "THINGS",
        "product_type": "THING",
        "package_size": "1 OZ",
        "updated_at": f"{effective}T00:00:00Z",
    }
    return row | changes


MakeWorld = Callable[..., World]
