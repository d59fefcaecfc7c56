"""Choose the engine of a table: Spark, or Sail if it was proved to compute the same.

The proof belongs to this installation, and is kept in its state folder.

It holds for one code version, contract and set of software. If it is lost or cannot be read, Spark computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from filelock import FileLock
from pydantic import TypeAdapter

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import computed_with
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import is_object_store
from platform_assets.records.code_version import Admission, EngineName
from platform_assets.spark.sail.shown_equal import EQUAL

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_KEPT = TypeAdapter(dict[str, Admission])


def admissions(platform: Platform) -> Mapping[str, Admission]:
    """Return the stored admissions, by table, for any code."""
    with suppress(OSError, LakeError, ValueError):
        return _KEPT.validate_json(_file(platform).read() or b"{}")
    return {}


def admit(platform: Platform, table: str, found: Admission) -> None:
    """Store a table's result in place of its earlier one."""
    file = _file(platform)
    with FileLock(f"{file}.lock"):
        kept = {name: of_table for name, of_table in admissions(platform).items() if name in platform.catalogue.names}
        file.replace(_KEPT.dump_json(kept | {table: found}, indent=1))


def take_off(platform: Platform, table: str, why: str) -> bool:
    """End a table's admission, so that Spark computes it; return whether it was admitted for its present version."""
    if why_not_admitted(platform, table):
        return False
    now = admissions(platform)[table]
    admit(platform, table, now.model_copy(update={"refused": why, "at": datetime.now(UTC)}))
    return True


def engine_of(platform: Platform, contract: Contract) -> EngineName:
    """Return the engine of a silver or gold table."""
    return "spark" if why_spark(platform, contract) else "sail"


def why_spark(platform: Platform, contract: Contract) -> str:
    """Return why Spark computes a table, as the end of a sentence; empty if Sail does."""
    if platform.settings.engine == "spark":
        return "PLATFORM_ENGINE is spark"
    return why_no_sail(platform.settings) or why_not_admitted(platform, contract.name)


def not_by_sail(platform: Platform, tables: Iterable[str]) -> dict[str, str]:
    """Return tables that Spark computes although Sail was requested, each with the reason."""
    if platform.settings.engine == "spark":
        return {}
    contracts = (platform.catalogue[table] for table in tables)
    reasons = {contract.name: why_spark(platform, contract) for contract in contracts if contract.inputs}
    return {table: why for table, why in reasons.items() if why}


def why_no_sail(settings: Settings) -> str:
    """Return why an installation cannot use Sail for any table; empty if it can."""
    if is_object_store(settings.lake):
        return "Sail was not tried with a lake in an object store"
    if settings.spark_remote:
        return "Sail works beside a Spark of this machine, not beside a Spark Connect server"
    return ""


def why_not_admitted(platform: Platform, table: str) -> str:
    """Return why Spark computes a table and not Sail, as the end of a sentence; empty if it is admitted."""
    known = admissions(platform).get(table)
    if known is None:
        return "it was not verified"
    now = platform.version(table)
    if known.code_version != now.code:
        return f"it was verified with other code ({known.code_version}; today's is {now.code})"
    if known.configuration != now.configuration:
        return "it was verified under another contract"
    if known.software != software_compared():
        return "it was verified with other versions of Spark, Sail or the platform"
    return known.refused


def software_compared() -> dict[str, str]:
    """Return the compared versions and the list of equal expressions; without Sail if it is not installed."""
    software = {"spark": version("pyspark"), "list": EQUAL.digest}
    with suppress(PackageNotFoundError):
        software["sail"] = version("pysail")
    return computed_with(software)


def _file(platform: Platform) -> Location:
    return located(platform.settings.state / "admitted.json")
