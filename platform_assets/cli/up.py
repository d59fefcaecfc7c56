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
from platform_assets.settings import load_settings, project_root

_PATIENCE_S = 15


def up(port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 3000) -> None:
    """Open the Dagster UI on loopback with the daemon running, until Ctrl-C."""
    _require_free(port)
    settings = load_settings()
    environment = os.environ | {"DAGSTER_HOME": str(dagster_home(settings)), "PLATFORM_STATE": str(settings.state)}
    dagster = shutil.which("dagster", path=str(Path(sys.executable).parent)) or "dagster"
    command = [dagster, "dev", "--host", "127.0.0.1", "--port", str(port), "--workspace", "workspace.yaml"]
    console.print(f"Opening [bold]http://127.0.0.1:{port}[/] - stop with Ctrl-C")
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
