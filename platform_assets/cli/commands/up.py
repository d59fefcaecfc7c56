"""`up`: the Dagster UI and daemon on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from platform_assets.cli.console import EXIT_FAILED, UsageError, console
from platform_assets.cli.dagster_home import dagster_home
from platform_assets.cli.progress import hush, telling
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.functions import refuse_wrong_functions
from platform_assets.settings import load_settings, project_root

_PATIENCE_S = 15


def up(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 3000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only look: no daemon, and no button that changes anything.")
    ] = False,
) -> None:
    """Open the Dagster UI on loopback with the daemon running, until Ctrl-C."""
    _require_free(port)
    settings = load_settings()
    refuse_wrong_functions(load_catalogue(settings))
    home = dagster_home(settings)
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {"DAGSTER_HOME": str(home), "PLATFORM_STATE": str(settings.state)}
    if "ui_url" not in settings.model_fields_set:
        environment["PLATFORM_UI_URL"] = address
    if not read_only:
        with telling(context, "preparing Dagster"):
            _create_pools(home)
    hush(context)
    command = [*_server(read_only), "--host", "127.0.0.1", "--port", str(port), "--workspace", "workspace.yaml"]
    console.print(f"Opening [bold]{address}[/]{' to look only' if read_only else ''} - stop with Ctrl-C")
    # A session of its own, so that everything Dagster starts can be ended together.
    server = subprocess.Popen(command, cwd=project_root(), env=environment, start_new_session=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        code = server.wait()
    except _StopRequested:
        code = 0
    finally:
        _end(server)
    raise typer.Exit(EXIT_FAILED if code else 0)


def _server(read_only: bool) -> list[str]:
    name = "dagster-webserver" if read_only else "dagster"
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or name
    return [program, "--read-only"] if read_only else [program, "dev"]


def _create_pools(home: Path) -> None:
    """Before the daemon looks at the queue for the first time."""
    import dagster as dg

    from platform_assets.orchestration.instance.pools import create_pools

    with dg.DagsterInstance.from_config(str(home)) as instance:
        create_pools(instance)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(
                f"Port {port} of 127.0.0.1 cannot be used: {error.strerror}.",
                "Stop what listens there, or choose another port with --port.",
            ) from error


class _StopRequested(BaseException):
    """Leaves the wait for the server, which a signal handler could not wait for itself."""


def _stop(number: int, frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise _StopRequested


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask everything to stop, wait, then end what is left."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
        except ProcessLookupError:
            return
        try:
            server.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
