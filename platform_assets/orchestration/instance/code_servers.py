"""Code servers: what serves the definitions to UI and daemon, and starts runs, so that runs outlive both of them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

_TARGETS = {
    "python_module": ("--module-name", "module_name"),
    "python_package": ("--package-name", "package_name"),
    "python_file": ("--python-file", "relative_path"),
}
"""What a workspace may load from, by the option of Dagster's command that says so."""
_OPTIONS = ("--startup-timeout", "180", "--log-level", "warning", "--inject-env-vars-from-instance")


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
    """Return the servers that the locations of a workspace need, and a workspace in the folder that finds them.

    Args:
        folder: for sockets; its path must be short.
        module: that starts one as Dagster's command line does.
    """
    servers: list[CodeServer] = []
    places: list[dict[str, dict[str, object]]] = []
    for number, place in enumerate(YAML(typ="safe").load(workspace)["load_from"]):
        [(kind, given)] = place.items()
        if kind not in _TARGETS:
            places.append(place)  # a server that is started elsewhere
            continue
        option, field = _TARGETS[kind]
        target = given if isinstance(given, dict) else {field: given}
        for path in {"relative_path", "working_directory"} & target.keys():
            target[path] = str(workspace.parent / target[path])
        name, socket = target.get("location_name", Path(target[field]).name), folder / f"{number}.sock"
        more = {option: field, "--attribute": "attribute", "--working-directory": "working_directory"}
        chosen = [word for option, field in more.items() if field in target for word in (option, target[field])]
        start = (sys.executable, "-m", module, "code-server", "start", "--socket", str(socket), "--location-name", name)
        servers.append(CodeServer(name, (*start, *_OPTIONS, *chosen), socket))
        places.append({"grpc_server": {"location_name": name, "socket": str(socket), "additional_metadata": target}})
    found = folder / "workspace.yaml"
    found.write_text(json.dumps({"load_from": places}), encoding="utf-8")  # which is YAML, too
    return tuple(servers), found
