"""What the values of settings may be, where that takes more than a type: checked and put in order as they are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from platform_assets.addresses import nobody_can_listen, origin_of
from platform_assets.settings_words import SHORTEST_PASSWORD
from platform_assets.sql_settings import as_text, problems_of

_NOT_FOR_JAVA = re.compile(r'[:"\\\x00-\x1f\x7f]')
"""Where Java takes a folder's name to end, or to hold something else, among its options and in its class path."""


_WHERE = {"spark.master": "PLATFORM_SPARK_MASTER", "spark.remote": "PLATFORM_SPARK_REMOTE"}


def java_can_open(folder: Path) -> Path:
    """A folder as it was, where a JVM can be told to use it.

    Raises:
        ValueError: its path has a character that Java takes for something else.
    """
    if found := _NOT_FOR_JAVA.search(str(folder)):
        raise ValueError(
            f"the folder {str(folder)!r} has {found[0]!r} in its path, which Java misreads: name one without"
        )
    return folder


def _no_url(value: object) -> object:
    if isinstance(value, str) and "://" in value:
        raise ValueError("must be a folder of this machine, not a URL")
    if value == "":  # which would be the folder in which it lies by itself
        raise ValueError("must name a folder; without the variable it is the one that there is by itself")
    return value


def _free(value: dict[str, str]) -> dict[str, str]:
    for name, setting in _WHERE.items():
        if name in value:  # it would win, and all that depends on where Spark computes be done for another place
            raise ValueError(f"sets {name}, for which there is {setting}")
    if problems := problems_of(value):
        raise ValueError(f"sets {'; '.join(problems)}, because it changes what days come out as")
    return value


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _encrypted(value: SecretStr | None) -> SecretStr | None:
    if value and not nobody_can_listen(value.get_secret_value()):
        raise ValueError("must be an https:// address, or http:// on this machine")
    return value


def _without_paths(value: tuple[str, ...]) -> tuple[str, ...]:
    given = tuple(filter(None, value))
    for address in given:
        if origin_of(address) is None or address.count("/") > 2:
            raise ValueError(f"{address!r} is not written like https://dagster.example.com, without a path")
    return given


def _can_be_typed(value: SecretStr | None) -> SecretStr | None:
    if value and (len(value.get_secret_value()) < SHORTEST_PASSWORD or not value.get_secret_value().isprintable()):
        raise ValueError(f"must have at least {SHORTEST_PASSWORD} characters, and no line end among them")
    return value


def _of_connect(value: SecretStr | None) -> SecretStr | None:
    if value and not value.get_secret_value().startswith("sc://"):
        raise ValueError("must begin with sc://, as sc://spark.example.com:15002")
    return value


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


EMPTY_IS_NONE = BeforeValidator(_none_if_empty)
"""A variable that is set to nothing says that there is no value."""
Folder = Annotated[Path, BeforeValidator(_no_url)]
"""Of this machine."""
SparkConf = Annotated[dict[str, str], BeforeValidator(as_text), AfterValidator(_free)]
"""Settings of Spark, without those that change results."""
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Separated by commas."""
Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_without_paths)]
"""Addresses of pages, without paths, separated by commas."""
Secret = Annotated[SecretStr | None, EMPTY_IS_NONE]
"""Shown nowhere."""
Remote = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_of_connect)]
"""A Spark Connect server, whose address may hold a token."""
Password = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_can_be_typed)]
"""Long enough, and typed by people."""
Webhook = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_encrypted)]
"""An address to which nobody else listens."""
