"""By which engine a step is computed: Spark, or Sail for tables that it was shown to compute alike."""

from __future__ import annotations

from platform_assets.contracts import Contract
from platform_assets.engine.admissions import why_not_admitted
from platform_assets.engine.platform import Platform
from platform_assets.places import is_object_store
from platform_assets.records.admission import EngineName
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import sail_session
from platform_assets.spark.session.on_demand import SparkOnDemand


def engine_of(platform: Platform, contract: Contract) -> EngineName:
    """What computes the days of a silver or gold table."""
    return "spark" if why_spark(platform, contract) else "sail"


def why_spark(platform: Platform, contract: Contract) -> str:
    """Why Spark computes a table, as the end of a sentence; empty if Sail does."""
    if platform.settings.engine == "spark":
        return "PLATFORM_ENGINE is spark"
    return why_no_sail(platform.settings) or why_not_admitted(platform, contract.name)


def why_no_sail(settings: Settings) -> str:
    """Why an installation cannot use Sail, whatever the table; empty if it can."""
    if is_object_store(settings.lake):
        return "Sail was not tried with a lake in an object store"
    if settings.spark_remote:
        return "Sail works beside a Spark of this machine, not beside a Spark Connect server"
    return ""


def session_of(platform: Platform, engine: EngineName, spark: SparkOnDemand) -> SparkOnDemand:
    """Gives the session of an engine."""
    return spark if engine == "spark" else lambda: sail_session(platform.settings)
