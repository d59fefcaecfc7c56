"""Rehearse in a JVM that will be lent: a refresh of a few rows, so that Java has compiled what all need.

Its lake lies in the folder of the JVM's own files, and goes with it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import SecretStr

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.sources.apart import rest
from platform_assets.spark.session.on_demand import SparkOnDemand

_FIRST = date(2017, 3, 20)
_DAYS = 31
"""So many that windows of days at both ends have a gap between them: what reads several ranges is compiled, too."""
_SALES = 4
"""A day, of which the last breaks a rule, as some of nearly every day do."""
_TURNS = (("csv", "jsonl", "parquet"), ("csv", "jsonl"), ("parquet",), ("parquet",))
"""Formats of what is delivered: first everything, then corrections. After some of these Java has compiled most of what
it is going to compile; what reads one format is compiled for it alone."""


def rehearse(folder: Path, spark: SparkOnDemand) -> None:
    """Load a month of the shipped tables, and correct its ends a few times.

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
        today=_FIRST + timedelta(90),
        settle_s=0,
        secret=SecretStr("of a rehearsal, which nobody else looks at"),
    )
    try:
        _land(settings, "products", _FIRST, "products", [_product(number) for number in range(3)], ("jsonl",))
        for turn, formats in enumerate(_TURNS):
            days = [_FIRST + timedelta(number) for number in range(0, _DAYS, _DAYS - 1 if turn else 1)]
            rows = [_sale(number, day, turn) for day in days for number in range(_SALES)]
            _land(settings, "transactions", days[-1] + timedelta(turn), f"turn-{turn}", rows, formats)
            with open_platform(settings) as platform:
                refresh(platform, spark, Author("rehearsal", "a rehearsal"))
    finally:
        rest()


def _land(
    settings: Settings, source: str, arrival: date, name: str, rows: list[dict[str, Any]], formats: Collection[str]
) -> None:
    """Deliver rows once in each format, of sales each time those of other baskets."""
    folder = settings.landing_folder / source / str(arrival)
    folder.mkdir(parents=True, exist_ok=True)
    for number, kind in enumerate(formats):
        own = [row | {"basket_id": row["basket_id"] + 10_000 * number} if "basket_id" in row else row for row in rows]
        texts = [{field: _text(value) for field, value in row.items()} for row in own]
        file = folder / f"{name}.{kind}"
        match kind:
            case "parquet":
                pq.write_table(pa.Table.from_pylist(own, pa.schema([(f, _type(v)) for f, v in own[0].items()])), file)
            case "csv":
                with file.open("w", encoding="utf-8", newline="") as opened:
                    table = csv.DictWriter(opened, texts[0])
                    table.writeheader()
                    table.writerows(texts)
            case _:
                file.write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")


def _text(value: Any) -> Any:
    """Write a value as text formats have it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return str(value) if isinstance(value, date | Decimal) else value


def _type(value: Any) -> pa.DataType:
    """Return the type of a column of Parquet with such values, as contracts have it."""
    of_other = {bool: pa.bool_(), datetime: pa.timestamp("us", "UTC"), Decimal: pa.decimal128(12, 2)}
    return of_other.get(type(value), pa.int64())


def _product(number: int) -> dict[str, Any]:
    return {
        "product_id": number,
        "effective_date": _FIRST,
        "manufacturer_id": 1,
        "department": "GROCERY",
        "brand": "National",
        "product_category": "THINGS",
        "product_type": "THING",
        "package_size": "1 OZ",
        "updated_at": datetime.combine(_FIRST, time(), UTC),
    }


def _sale(number: int, day: date, turn: int) -> dict[str, Any]:
    return {
        "household_id": number,
        "store_id": 7,
        "basket_id": day.day * 100 + number,
        "product_id": number % 3,
        "quantity": 1 + turn if number < _SALES - 1 else -1,
        "sales_value": Decimal("2.50"),
        "retail_disc": Decimal("0.50"),
        "coupon_disc": Decimal("0.00"),
        "coupon_match_disc": Decimal("0.00"),
        "week": 1,
        "transaction_timestamp": datetime.combine(day, time(10), UTC),
        "updated_at": datetime.combine(day, time(10, 10 + turn), UTC),
        "voided": False,
    }
