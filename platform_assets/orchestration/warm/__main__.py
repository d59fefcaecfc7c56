"""The process that keeps Spark ready, as `up` starts it; its argument is where it listens."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from platform_assets.orchestration.warm.keeper import Keeper
from platform_assets.settings import load_settings


def main() -> None:
    """Keep Spark ready until a signal ends it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    settings = load_settings()
    os.umask(settings.access.umask)
    Keeper(settings, Path(sys.argv[1])).keep()


def _stop(number: int, frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
