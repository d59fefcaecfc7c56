"""Lake and deliveries in an object store, by settings alone: it holds what a disk does, and undoes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from platform_assets.lakehouse.layout import located
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.object_store import Azurite, ObjectStore
from platform_assets_tests.support.places import digests_of, on_disk
from platform_assets_tests.support.world import product, sale

__all__ = ["run", "state"]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")


def deliver(landings: Iterable[Path], folder: str, arrival: str, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    content = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    for landing in landings:
        file = landing / folder / arrival / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


@pytest.fixture(params=["object_store", "azurite"])
def store(request: pytest.FixtureRequest) -> ObjectStore | Azurite:
    """One of each kind."""
    found: ObjectStore | Azurite = request.getfixturevalue(request.param)
    return found


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_lake_in_a_bucket_holds_what_one_on_a_disk_does(
    run: Run, state: Path, store: ObjectStore | Azurite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Loaded, corrected, rolled back, verified, copied: seven processes, five of them with a Spark of their own.

    The bucket's platform takes its deliveries from the bucket, the disk's the same ones from a folder.
    """
    place = f"{store.url}/{uuid4().hex}"
    landings, bucket = (on_disk(located(f"{place}/deliveries")), tmp_path / "deliveries"), f"{place}/lake"
    monkeypatch.setenv("PLATFORM_LANDING", f"{place}/deliveries")
    monkeypatch.setenv("PLATFORM_SETTLE_S", "0")
    disk = {
        "PLATFORM_STATE": str(tmp_path / "other"),
        "PLATFORM_LAKE": str(tmp_path / "lake"),
        "PLATFORM_LANDING": str(tmp_path / "deliveries"),
    }
    monkeypatch.setenv("PLATFORM_LAKE", bucket)

    looked = run("admin", "doctor")
    assert f"{bucket}: conditional writes" in looked.out

    deliver(landings, "products", DAYS[0], "p.jsonl", [product(n, DAYS[0], "MEAT") for n in (1, 2)])
    for day in DAYS:
        deliver(
            landings, "transactions", day, "t.jsonl", [sale(int(day[-2:]) * 10 + n, 1 + n % 2, day) for n in range(4)]
        )
    loaded = run_apart("refresh")
    assert loaded.code == 0, loaded.err
    first = digests_of(bucket)

    corrected = sale(20, 1, DAYS[1], sales_value="99.00", updated_at=f"{DAYS[2]}T12:00:00Z")
    deliver(landings, "transactions", DAYS[2], "late.jsonl", [corrected])
    mended = run_apart("refresh")
    assert mended.code == 0, mended.err
    assert run_apart("refresh", **disk).code == 0
    second = digests_of(bucket)
    assert second == digests_of(str(tmp_path / "lake")), "a bucket holds what a disk does"
    changed = {table: {day for day in days if days[day] != first[table][day]} for table, days in second.items()}
    assert changed["silver.transactions"] == {DAYS[1]}

    newest = run("status", "releases", "--json").json[0]
    undone = run("undo", f"publication:{newest['publication']}", "--reason", "the old figures", "--by", "zoe")
    assert undone.code == 0, undone.err
    rows = run("read", "silver.transactions", "--days", DAYS[1], "--format", "csv")
    assert "99.00" not in rows.out
    assert "99.00" in run("read", "silver.transactions", "--release", str(newest["release"]), "--format", "csv").out

    proved = run_apart("admin", "verify", "gold.daily_sales", "--days", DAYS[0])
    assert proved.code == 0, proved.err
    audited = run("admin", "audit", "--read-all")
    assert audited.code in (0, 1), audited.err
    assert "damaged" not in audited.out
    copied = run("admin", "backup", str(tmp_path / "backup"))
    assert copied.code == 0, copied.err

    left = [path for path in located(bucket).files() if "__magic" in path or "_temporary" in path]
    assert not left, "jobs left nothing of their own"
    secret = next(value for name, value in store.environ.items() if name.endswith(("ACCESS_KEY", "ACCOUNT_KEY")))
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
    (state / "lake").exists() and pytest.fail("something was written to a folder instead")
    assert not [*tmp_path.glob("*s3:*"), *tmp_path.glob("abfss:*")]
    assert not (state / "landing").exists()
    assert not [*(state / "fetched").rglob("*.jsonl")], "what was fetched is gone"
