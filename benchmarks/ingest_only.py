"""Take what was delivered and leave silver and gold stale, which no command does; settings from `PLATFORM_…` variables.

python -m benchmarks.ingest_only
"""

from __future__ import annotations

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session


def main() -> None:
    """Ingest every raw table, in a session of its own."""
    settings = load_settings()
    spark = create_session(settings, record_classes=False)
    try:
        with open_platform(settings) as platform:
            for contract in platform.catalogue:
                if contract.source is not None:
                    ingest(platform, lambda: spark, contract, Author("benchmark", "a benchmark"))
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main()
