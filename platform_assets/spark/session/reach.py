"""Find out whether Spark or a Connect server listens where settings say, without starting a session."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from platform_assets.settings import Settings
from platform_assets.spark.session.environment import HADOOP_FOLDERS

_WITHIN_S = 5.0
_PORT_OF_CONNECT = 15002
_HOW = {"spark": 7077, "k8s": 443}
"""Of masters that are reached at an address, and the port where it has none."""

SET_HADOOP_FOLDER = "Set HADOOP_CONF_DIR to the folder with the cluster's yarn-site.xml."
"""What to do where it is not found."""


def places_of(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Host and port of the Connect server, or of each master; none where Spark runs here or is asked for otherwise."""
    if settings.spark_remote:
        address = settings.spark_remote.get_secret_value().partition(";")[0]
        return _place(address.removeprefix("sc://"), _PORT_OF_CONNECT)
    kind, _, addresses = settings.spark_master.partition("://")
    if kind not in _HOW:
        return ()
    each = (address.rpartition("://")[2] for address in addresses.split(","))
    return tuple(place for address in each for place in _place(address, _HOW[kind]))


def what_is_asked(settings: Settings) -> tuple[str, str]:
    """Return who listens at the places of the settings, and what says where that is."""
    if settings.spark_remote:
        return "Spark Connect", "PLATFORM_SPARK_REMOTE"
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


def why_no_yarn(environ: Mapping[str, str], spark_conf: Collection[str]) -> str:
    """Return what keeps Spark from finding YARN; empty if nothing does.

    Args:
        spark_conf: names of Spark's properties, which may give the address instead of `yarn-site.xml`.
    """
    folders = [Path(environ[name]) for name in HADOOP_FOLDERS if environ.get(name)]
    if not folders:
        return f"{' or '.join(HADOOP_FOLDERS)} is to name the folder of yarn-site.xml, and is not set"
    is_named = any(name.startswith("spark.hadoop.yarn.resourcemanager.") for name in spark_conf)
    if is_named or any((folder / "yarn-site.xml").is_file() for folder in folders):
        return ""
    return f"there is no yarn-site.xml in {' or '.join(map(str, folders))}"
