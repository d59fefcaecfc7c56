"""Where the ResourceManagers of YARN are, read from the files that Hadoop's own clients read it from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from platform_assets.spark.session.environment import HADOOP_FOLDERS

_OF_SPARK = "spark.hadoop."
_MANAGER = "yarn.resourcemanager."
_PORT = 8032
_BY_ITSELF = {f"{_MANAGER}hostname": "0.0.0.0"}  # noqa: S104 - asked for there, not listened at
_VARIABLE = re.compile(r"\$\{([^}]+)\}")

SET_HADOOP_FOLDER = "Set HADOOP_CONF_DIR to the folder with the cluster's yarn-site.xml."
"""What to do where it is not found."""


def resource_managers(environ: Mapping[str, str], conf: Mapping[str, str]) -> tuple[str, ...]:
    """Their addresses, `host:port`; several where one stands in for another, none where nothing says where they are.

    Args:
        environ: names the folders with `yarn-site.xml`, of which the first one counts.
        conf: extra configuration of Spark, which wins.
    """
    site = _site(environ)
    said = {} if site is None else _BY_ITSELF | site
    said |= {name.removeprefix(_OF_SPARK): value for name, value in conf.items() if name.startswith(_OF_SPARK)}
    several = said.get(f"{_MANAGER}ha.enabled", "").strip() == "true"
    names = said.get(f"{_MANAGER}ha.rm-ids", "").split(",") if several else []
    ends = [f".{name.strip()}" for name in names] or [""]
    return tuple(address for end in ends if (address := _address(said, end)))


def why_no_yarn(environ: Mapping[str, str]) -> str:
    """What keeps Spark from finding YARN, of which only settings of Hadoop know where it is; empty if nothing does."""
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
    """Settings of the first folder that has a `yarn-site.xml`, with those beside it; None where none can be read."""
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
