"""`up`: the Dagster UI and daemon on this machine, until Ctrl-C or until one of them ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from ruamel.yaml import YAML

from platform_assets.cli.console import UsageError, errors, platform_to_look, print_parts, say, show
from platform_assets.cli.held_view import left_parts
from platform_assets.cli.options import AsJson
from platform_assets.cli.processes import Processes
from platform_assets.cli.progress import hush, telling
from platform_assets.cli.session import DagsterStorageError, dagster_home, dagster_instance
from platform_assets.contracts import Catalogue
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.ingest.aside import refused_files
from platform_assets.engine.pending import delivered
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.errors import PlatformError
from platform_assets.places import USE_A_SHORTER, why_no_socket
from platform_assets.project import project_or_installed
from platform_assets.report import Report
from platform_assets.settings import Settings, load_settings, project_root

_SERVERS = "platform_assets.orchestration.servers"
_LOADED_WITHIN_S = 60.0
"""UI and daemon need not wait longer: they find a code server that comes later, only not at once."""


PATIENT = {
    # On a busy machine the code server may need longer than Dagster's minute to start a run, which would be given up.
    "DAGSTER_GRPC_TIMEOUT_SECONDS": "180",
    "DAGSTER_GRPC_SHUTDOWN_GRACE_PERIOD": "60",
}
_SAY_ONCE = {"DAGSTER_IS_DEV_CLI": "1", "DAGSTER_verbose": ""}
"""As `dagster dev` has it: why definitions cannot be loaded is said by the code server alone, without a trace."""

_KEPT_EVERY_S = 2.0
"""After Ctrl-C while a large lake is shown to Dagster, the next start goes on from the last save."""

_PASSWORD = "PLATFORM_UI_PASSWORD"  # noqa: S105

_SPARK_SOCKET = "warm.sock"
_WEBSERVER, _SPARK = "the webserver", "the Spark that is kept ready"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_LOADS = {
    "python_module": ("--module-name", "module_name"),
    "python_package": ("--package-name", "package_name"),
    "python_file": ("--python-file", "relative_path"),
}
"""What a workspace may load from, by the option of Dagster's command that names it."""


class UpError(PlatformError):
    """A process that `up` starts cannot run on this machine."""


def up(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 3000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only look: no daemon, and no button that changes anything.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Open the Dagster UI on loopback with the daemon running, until Ctrl-C."""
    _require_free(port)
    if why := why_no_socket(f"platform-assets-abcdefgh/{_SPARK_SOCKET}"):
        raise UpError(f"Dagster cannot be started: {why}.", USE_A_SHORTER)
    settings = load_settings()
    import_module("platform_assets.spark")  # refuses a PySpark of others
    password = os.environ.pop(_PASSWORD, "")
    catalogue = load_catalogue(settings)
    refuse_wrong_functions(catalogue)
    home = dagster_home(settings)
    address = f"http://127.0.0.1:{port}"
    environment = PATIENT | os.environ | _SAY_ONCE | {"DAGSTER_HOME": str(home)}
    environment |= {"PLATFORM_STATE": str(settings.state)}
    if "ui_url" not in settings.model_fields_set:
        environment["PLATFORM_UI_URL"] = address
    if read_only:
        with telling("showing Dagster what was published without it"):
            show_published(settings, home)
    else:
        from platform_assets.orchestration.instance.launcher import create_pools

        # Before the daemon looks at the queue for the first time.
        with telling("preparing Dagster"), dagster_instance(home) as instance:
            create_pools(instance)
    hush()
    parts = [f"Starting Dagster at {address}{', to look only' if read_only else ''}"]
    if settings.ui_password:
        parts.append("It asks for a name, any will do, and for the password in PLATFORM_UI_PASSWORD.")
    parts.append("Days that commands publish are among the events of their tables; Runs has what Dagster starts.")
    if read_only:
        parts.append("What commands publish from now on is shown once `up` runs, or this is started again.")
    else:
        parts.append(f"By itself: {describe_automation(settings, catalogue)}.")
        parts.append("Each can be switched off there, under Automation; docs/automation.md says more.")
    show(Report(parts, {"address": address, "read_only": read_only}), as_json)
    if not as_json:
        tell_what_is_left(settings)
    sys.stdout.flush()
    _run(settings, environment, password, port, read_only=read_only)


def _run(settings: Settings, environment: Mapping[str, str], password: str, port: int, *, read_only: bool) -> None:
    """Run all processes until one ends, or this process gets a signal to stop."""
    for number in _STOPS:
        signal.signal(number, _stop)
    with TemporaryDirectory(prefix="platform-assets-") as folder:
        processes = Processes(project_root(), environment, Path(folder))
        try:
            workspace = project_or_installed("workspace.yaml", project_root())
            if not read_only:
                workspace = _start_code_servers(processes, workspace, Path(folder), is_warm=settings.warm)
            processes.start(_WEBSERVER, webserver_command(port, workspace, read_only=read_only), {_PASSWORD: password})
            if not read_only:
                # It would log every tick otherwise, and at the first start that there was none before; the UI has them.
                quiet = ("--log-level", "error", "--workspace", str(workspace))
                processes.start("the daemon", _module(_SERVERS, "daemon", "run", *quiet))
                if settings.warm and _computes_here(settings):
                    keeper = _module("platform_assets.orchestration.keeper", str(Path(folder) / _SPARK_SOCKET))
                    processes.start(_SPARK, keeper)
            _wait(processes, port)
        finally:
            _ignore_stops()
            processes.end()


def _ignore_stops() -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Stop waiting for the processes, which are ended afterwards. Ctrl-C is reported as for every command."""
    _ignore_stops()
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(0)


def describe_automation(settings: Settings, catalogue: Catalogue) -> str:
    """Return what runs automatically, and when."""
    crons = {
        "all tables": settings.daily_cron,
        "the deep restatement": settings.deep_restatement_cron,
        "maintenance": settings.maintenance_cron,
    }
    if any(contract.comparisons for contract in catalogue):
        crons["comparisons"] = settings.reconcile_cron
    timed = ", ".join(f"{what} at '{cron}'" for what, cron in crons.items())
    return f"files that land are taken within half a minute; in UTC, as cron has it, {timed}"


def tell_what_is_left(settings: Settings) -> None:
    """Print once what no run will ingest; otherwise only a sensor's tick would say so, on a page that is not open."""
    try:
        with platform_to_look(settings) as platform:
            print_parts(left_parts(delivered(platform).problems, refused_files(platform).there))
    except PlatformError as error:
        say("[yellow]note[/]", f"files that cannot be taken are not shown: {error.what}", to=errors)


def _wait(processes: Processes, port: int) -> None:
    """Say when the pages can be opened. Wait until a required part ends, and report that as an error."""
    starting = [f"http://127.0.0.1:{port}"]

    def look() -> None:
        with socket.socket() as probe:
            if starting and not probe.connect_ex(("127.0.0.1", port)):
                say("[green]Ready[/]", f"{starting.pop()} - stop with Ctrl-C", to=errors)

    while True:
        name, how = processes.next_ended(look)
        if name != _SPARK:
            break
        say("[yellow]up[/]", f"{name} {how}; runs start their own until `up` is started again", to=errors)
    reason = ""
    if name == _WEBSERVER:
        try:
            _require_free(port)
        except UsageError as error:
            reason = f": {error.what.rstrip('.')}"
    raise UpError(
        f"{name[0].upper()}{name[1:]} {how}, and all of `up` with it{reason}.",
        "What it wrote above says why. Start `platform-assets up` again, or have systemd do so, as docs/deployment.md "
        "shows; what was published stays, and the next run goes on from there.",
    )


def _computes_here(settings: Settings) -> bool:
    from platform_assets.spark.session.on_demand import computes_here  # PySpark, which nothing else of this needs

    return computes_here(settings)


def _start_code_servers(processes: Processes, workspace: Path, folder: Path, *, is_warm: bool) -> Path:
    """Start the code servers, which serve definitions and start runs; return a workspace that finds them.

    Each location of the project's workspace has a server, so that webserver and daemon share the loaded code. Sockets
    need a folder with a short path.
    """
    module = _SERVERS if is_warm else "dagster"
    places: list[dict[str, Any]] = []
    sockets: list[Path] = []
    for number, place in enumerate(YAML(typ="safe").load(workspace)["load_from"]):
        [(kind, given)] = place.items()
        if kind not in _LOADS:
            places.append(place)  # its server is started elsewhere
            continue
        option, field = _LOADS[kind]
        target = given if isinstance(given, dict) else {field: given}
        for path in {"relative_path", "working_directory"} & target.keys():
            target[path] = str(workspace.parent / target[path])
        name, at = target.get("location_name", Path(target[field]).name), folder / f"{number}.sock"
        options = {option: field, "--attribute": "attribute", "--working-directory": "working_directory"}
        chosen = [word for option, field in options.items() if field in target for word in (option, target[field])]
        start = _module(module, "code-server", "start", "--socket", str(at), "--location-name", name, *chosen)
        quiet = ("--startup-timeout", "180", "--log-level", "warning", "--inject-env-vars-from-instance")
        processes.start(f"the code server of {name}", [*start, *quiet])
        sockets.append(at)
        places.append({"grpc_server": {"location_name": name, "socket": str(at), "additional_metadata": target}})
    until = time.monotonic() + _LOADED_WITHIN_S
    while not all(map(_answers, sockets)) and time.monotonic() < until:
        time.sleep(0.1)
    served = folder / "workspace.yaml"
    served.write_text(json.dumps({"load_from": places}), encoding="utf-8")  # which is YAML, too
    return served


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def webserver_command(port: int, workspace: Path, *, read_only: bool) -> list[str]:
    """Return the command that serves the pages."""
    only_look = ("--read-only",) if read_only else ()
    place = ("--host", "127.0.0.1", "--port", str(port), "--workspace", str(workspace))
    return _module("platform_assets.orchestration.webserver", *only_look, *place, "--dagster-log-level", "warning")


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def show_published(settings: Settings, home: Path) -> None:
    """Write published days into Dagster's storage; otherwise a lake without a daemon would seem empty.

    If that storage cannot be written, the pages open without them; an unreachable server is an error.
    """
    from platform_assets.orchestration.assets.publications import show_since_last
    from platform_assets.orchestration.instance.events import is_for_all

    try:
        with platform_to_look(settings) as platform, dagster_instance(home) as instance:
            more = True
            while more:
                shown = show_since_last(instance, platform, _KEPT_EVERY_S)
                more = shown.more
                for failed in shown.failed:
                    say("[yellow]note[/]", f"Dagster does not take {failed}", to=errors)
    except DagsterStorageError:
        raise  # the pages could not be opened either
    except Exception as error:
        if not (isinstance(error, PlatformError) or is_for_all(error)):
            raise
        why = error.what if isinstance(error, PlatformError) else str(error).partition("\n")[0]
        say("[yellow]note[/]", f"pages may lack what was published without Dagster: {why}", to=errors)


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
