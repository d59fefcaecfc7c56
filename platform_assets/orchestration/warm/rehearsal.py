"""What a JVM does before somebody works with it: a refresh of a few rows, so that Java has compiled what all need.

Its lake lies in the folder of the JVM's own files, and goes with it.
"""

from __future__ import annotations

import csv
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.on_demand import SparkOnDemand

_FIRST = date(2017, 3, 1)
_DAYS = 2
_CORRECTIONS = 2
"""After as many Java has compiled most of what it is going to compile."""


def rehearse(folder: Path, spark: SparkOnDemand) -> None:
    """Load two days of the shipped tables, and correct them a few times.

    Args:
        folder: that is not there yet.
        spark: gives a session in the JVM that is to be made ready.

    Raises:
        PlatformError: it did not go as it should; the JVM is as good as it was.
        OSError: nothing can be written there.
    """
    folder.mkdir(0o700)
    settings = load_settings(
        state=folder,
        state_mode="700",
        lake="lake",
        lake_mode="",
        landing="landing",
        ledger_url=SecretStr(""),
        domains=("platform_assets.domains.retail",),
        calendar_first=_FIRST,
        calendar_last=_FIRST + timedelta(_DAYS - 1),
        today=_FIRST + timedelta(60),
        settle_s=0,
        secret=SecretStr("of a rehearsal, which nobody else looks at"),
    )
    _land(settings, "products", _FIRST, "products", [_product(number) for number in range(3)])
    for turn in range(1 + _CORRECTIONS):
        for day in (_FIRST + timedelta(number) for number in range(_DAYS)):
            rows = [_sale(number, day, turn) for number in range(3 if turn else 20)]
            _land(settings, "transactions", day + timedelta(turn), f"{day}-{turn}", rows)
        with open_platform(settings) as platform:
            refresh(platform, spark, Author("rehearsal", "a rehearsal"))


def _land(settings: Settings, source: str, arrival: date, name: str, rows: list[dict[str, Any]]) -> None:
    folder = settings.landing_folder / source / str(arrival)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if source == "transactions":
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(row | {"basket_id": row["basket_id"] + 1000} for row in rows)


def _product(number: int) -> dict[str, Any]:
    return {
        "product_id": number,
        "effective_date": str(_FIRST),
        "manufacturer_id": 1,
        "department": "GROCERY",
        "brand": "National",
        "product_category": "THINGS",
        "product_type": "THING",
        "package_size": "1 OZ",
        "updated_at": f"{_FIRST}T00:00:00Z",
    }


def _sale(number: int, day: date, turn: int) -> dict[str, Any]:
    return {
        "household_id": number,
        "store_id": 7,
        "basket_id": day.day * 100 + number,
        "product_id": number % 3,
        "quantity": 1 + turn,
        "sales_value": "2.50",
        "retail_disc": "0.50",
        "coupon_disc": "0.00",
        "coupon_match_disc": "0.00",
        "week": 1,
        "transaction_timestamp": f"{day}T10:00:00Z",
        "updated_at": f"{day}T10:{10 + turn}:00Z",
        "voided": False,
    }
