"""Code servers: what serves the definitions to UI and daemon, and starts runs, so that runs outlive both of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.workspace.load_target import WorkspaceFileTarget

_STARTUP_TIMEOUT_S = 180


@dataclass(frozen=True)
class CodeServer:
    """A process that serves one code location.

    Args:
        name: of the location.
        command: that starts it.
        socket: at which it answers, once it has loaded the definitions or knows why it cannot.
    """

    name: str
    command: tuple[str, ...]
    socket: Path


def code_servers(workspace: Path, folder: Path, module: str = "dagster") -> tuple[tuple[CodeServer, ...], Path]:
    """What `dagster dev` would start for the locations of a workspace, to be started by somebody who keeps it going.

    Args:
        folder: for sockets; its path must be short.
        module: that starts one as Dagster's command line does.

    Returns:
        The servers, and a workspace in the folder that finds them.
    """
    servers: list[CodeServer] = []
    places: list[dict[str, dict[str, object]]] = []
    for number, origin in enumerate(WorkspaceFileTarget([str(workspace)]).create_origins()):
        if isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin):
            target = origin.loadable_target_origin
            server = CodeServer(
                origin.location_name,
                tuple(_command(module, origin.location_name, folder / f"{number}.sock", target.get_cli_args())),
                folder / f"{number}.sock",
            )
            servers.append(server)
            place: dict[str, object] = {"socket": str(server.socket), "additional_metadata": target.as_dict}
        elif isinstance(origin, GrpcServerCodeLocationOrigin):
            place = {"host": origin.host, "port": origin.port, "socket": origin.socket}
        else:
            continue
        given = {key: value for key, value in place.items() if value is not None}
        places.append({"grpc_server": {"location_name": origin.location_name, **given}})
    found = folder / "workspace.yaml"
    found.write_text(json.dumps({"load_from": places}), encoding="utf-8")  # which is YAML, too
    return tuple(servers), found


def _command(module: str, name: str, socket: Path, target: Sequence[str]) -> Iterator[str]:
    yield from (sys.executable, "-m", module, "code-server", "start", "--socket", str(socket))
    yield from ("--location-name", name, "--startup-timeout", str(_STARTUP_TIMEOUT_S), "--log-level", "warning")
    yield from ("--inject-env-vars-from-instance", *target)
