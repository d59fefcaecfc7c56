"""Find out whether Spark, YARN or a Connect server listens where settings say, without starting a session."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from platform_assets.settings import Settings
from platform_assets.spark.session.environment import HADOOP_FOLDERS

_WITHIN_S = 5.0
_PORT_OF_CONNECT = 15002
_HOW = {"spark": 7077, "k8s": 443}
"""Of masters that are reached at an address, and the port where it has none."""

_OF_SPARK = "spark.hadoop."
_MANAGER = "yarn.resourcemanager."
_PORT = 8032
_BY_ITSELF = {f"{_MANAGER}hostname": "0.0.0.0"}  # noqa: S104 - asked for there, not listened at
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
SET_HADOOP_FOLDER = "Set HADOOP_CONF_DIR to the folder with the cluster's yarn-site.xml."
"""What to do where it is not found."""


def places_of(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Host and port of the Connect server, or of each master; none where Spark runs here or is asked for otherwise."""
    if settings.spark_remote:
        address = settings.spark_remote.get_secret_value().partition(";")[0]
        return _place(address.removeprefix("sc://"), _PORT_OF_CONNECT)
    if settings.spark_master == "yarn":
        managers = resource_managers(os.environ, settings.spark_conf)
        return tuple(place for address in managers for place in _place(address, 0))
    kind, _, addresses = settings.spark_master.partition("://")
    if kind not in _HOW:
        return ()
    each = (address.rpartition("://")[2] for address in addresses.split(","))
    return tuple(place for address in each for place in _place(address, _HOW[kind]))


def what_is_asked(settings: Settings) -> tuple[str, str]:
    """Return who listens at the places of the settings, and what says where that is."""
    if settings.spark_remote:
        return "Spark Connect", "PLATFORM_SPARK_REMOTE"
    if settings.spark_master == "yarn":
        return "YARN's ResourceManager", "yarn-site.xml in the folder that HADOOP_CONF_DIR names"
    return "Spark's master", "PLATFORM_SPARK_MASTER"


def why_nobody_listens(places: tuple[tuple[str, int], ...]) -> str:
    """Return what each place answered, where nobody listens at any; empty where somebody does."""
    said: list[str] = []
    for host, port in places:
        try:
            socket.create_connection((host, port), _WITHIN_S).close()
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return ""
    return "; ".join(said)


def _place(address: str, otherwise: int) -> tuple[tuple[str, int], ...]:
    try:
        parts = urlsplit(f"//{address}")
        return ((parts.hostname, parts.port or otherwise),) if parts.hostname else ()
    except ValueError:  # a port that is none, which Spark tells
        return ()


def resource_managers(environ: Mapping[str, str], conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return addresses of the managers, `host:port`; several that stand in for each other, none where none is named.

    Args:
        environ: names the folders with `yarn-site.xml`, of which the first one counts.
    """
    site = _site(environ)
    said = {} if site is None else _BY_ITSELF | site
    said |= {name.removeprefix(_OF_SPARK): value for name, value in conf.items() if name.startswith(_OF_SPARK)}
    several = said.get(f"{_MANAGER}ha.enabled", "").strip() == "true"
    names = said.get(f"{_MANAGER}ha.rm-ids", "").split(",") if several else []
    ends = [f".{name.strip()}" for name in names] or [""]
    return tuple(address for end in ends if (address := _address(said, end)))


def why_no_yarn(environ: Mapping[str, str]) -> str:
    """Return what keeps Spark from finding YARN, which only settings of Hadoop name; empty if nothing does."""
    folders = [Path(environ[name]) for name in HADOOP_FOLDERS if environ.get(name)]
    if not folders:
        return f"{' or '.join(HADOOP_FOLDERS)} is to name the folder of yarn-site.xml, and is not set"
    if _site(environ) is not None:
        return ""
    return f"there is no yarn-site.xml that can be read in {' or '.join(map(str, folders))}"


def _address(said: Mapping[str, str], end: str) -> str:
    address = said.get(f"{_MANAGER}address{end}") or said.get(f"{_MANAGER}hostname{end}", "")
    if not set(_VARIABLE.findall(address)) <= said.keys():
        return ""  # of what Hadoop knows from elsewhere
    address = _VARIABLE.sub(lambda named: said[named[1]], address).strip()
    return address if not address or ":" in address else f"{address}:{_PORT}"


def _site(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return settings of the first folder that has a `yarn-site.xml`, with those beside it; None if unreadable."""
    for folder in map(Path, filter(None, map(environ.get, HADOOP_FOLDERS))):
        with suppress(OSError, ElementTree.ParseError):
            of_yarn = _read(folder / "yarn-site.xml")
            with suppress(OSError, ElementTree.ParseError):
                return _read(folder / "core-site.xml") | of_yarn
            return of_yarn
    return None


def _read(file: Path) -> dict[str, str]:
    properties = ElementTree.parse(file).iter("property")  # noqa: S314 - Hadoop believes it, too
    return {each.findtext("name", "").strip(): each.findtext("value", "") for each in properties}
