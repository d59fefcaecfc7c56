"""The code server as `up` starts it where things are kept ready: Dagster's own, whose runs begin with all imported.

python -m platform_assets.orchestration.warm.code_server code-server start …

That is two processes. The first one starts the second by the same command, and anew whenever the definitions are
reloaded; the second loads them and starts the runs.
"""

from __future__ import annotations

from typing import Any, cast

from dagster._cli import main as run_dagster
from dagster._grpc import server

from platform_assets.orchestration.warm.runs import ReadyProcesses


class ReadyServer(server.DagsterApiServer):
    """Dagster's own server of definitions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Only now: runs begin with the environment that the server was given.
        self._mp_ctx: Any = ReadyProcesses()


def main() -> None:
    """Do what Dagster's command line does."""
    dagsters = cast("Any", server)
    dagsters.DagsterApiServer = ReadyServer
    dagsters.get_python_environment_entry_point = _entry_point
    cast("Any", run_dagster)()


def _entry_point(executable: str) -> list[str]:
    """By which command the first process starts the second."""
    return [executable, "-m", "platform_assets.orchestration.warm.code_server"]


if __name__ == "__main__":
    main()
