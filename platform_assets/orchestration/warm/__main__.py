"""The process that keeps Spark ready, as `up` starts it.

python -m platform_assets.orchestration.warm SOCKET [unrehearsed]
"""

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
    place, *options = sys.argv[1:]
    Keeper(settings, Path(place), rehearsed="unrehearsed" not in options).keep()


def _stop(number: int, frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
