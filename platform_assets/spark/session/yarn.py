"""Where the ResourceManagers of YARN are, read from the files that Hadoop's own clients read it from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from platform_assets.spark.session.environment import OF_HADOOP

_OF_SPARK = "spark.hadoop."
_MANAGER = "yarn.resourcemanager."
_PORT = 8032
_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def resource_managers(environ: Mapping[str, str], conf: Mapping[str, str]) -> tuple[str, ...]:
    """Their addresses, `host:port`; several where one stands in for another, none where nothing says where they are.

    Args:
        environ: names the folders with `yarn-site.xml`, of which the first one counts.
        conf: extra configuration of Spark, which wins.
    """
    said = _site(environ) | {
        name.removeprefix(_OF_SPARK): value for name, value in conf.items() if name.startswith(_OF_SPARK)
    }
    several = said.get(f"{_MANAGER}ha.enabled", "").strip() == "true"
    names = said.get(f"{_MANAGER}ha.rm-ids", "").split(",") if several else []
    ends = [f".{name.strip()}" for name in names] or [""]
    return tuple(address for end in ends if (address := _address(said, end)))


def why_no_yarn(environ: Mapping[str, str]) -> str:
    """What keeps Spark from finding YARN, of which only settings of Hadoop know where it is; empty if nothing does."""
    folders = [Path(environ[name]) for name in OF_HADOOP if environ.get(name)]
    if not folders:
        return f"{' or '.join(OF_HADOOP)} is to name the folder of yarn-site.xml, and is not set"
    if any((folder / "yarn-site.xml").is_file() for folder in folders):
        return ""
    return f"there is no yarn-site.xml in {' or '.join(map(str, folders))}"


def _address(said: Mapping[str, str], end: str) -> str:
    address = said.get(f"{_MANAGER}address{end}") or said.get(f"{_MANAGER}hostname{end}", "")
    address = _VARIABLE.sub(lambda named: said.get(named[1], ""), address).strip()
    return address if not address or ":" in address else f"{address}:{_PORT}"


def _site(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of the first folder that has some; what is damaged is for Hadoop to complain about."""
    for folder in filter(None, map(environ.get, OF_HADOOP)):
        with suppress(OSError, ElementTree.ParseError):
            site = ElementTree.parse(Path(folder) / "yarn-site.xml")  # noqa: S314 - Hadoop believes it, too
            properties = site.iter("property")
            return {each.findtext("name", "").strip(): each.findtext("value", "") for each in properties}
    return {}
