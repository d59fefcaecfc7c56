"""Exposures: what lies downstream of the tables, outside of the platform, and wants to hear of what was published."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from platform_assets.addresses import origin_of
from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import check_declaration
from platform_assets.errors import did_you_mean

ANNOUNCEMENTS = "announcements"
"""Where the platform's own announcements go; no exposure has that name."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class Exposure:
    """Declare something downstream, such as a dashboard or a cache, that is told of publications of what it reads.

    Args:
        name: for people; no two exposures share one.
        url_env: the environment variable that holds its address, which is a secret.
        reads: `<layer>.<table>` of each table that it reads directly.
        owner: who answers for it, such as an email address; shown in Dagster.
        page: where people look at it, as `https://…`; a public link in Dagster.
    """

    name: str
    url_env: str
    reads: tuple[str, ...]
    owner: str = ""
    page: str = ""

    def __post_init__(self) -> None:
        check_declaration(self, f"The exposure {self.name!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        whose = f"The exposure {self.name!r}"
        if not self.name.strip() or not self.name.isprintable() or self.name == ANNOUNCEMENTS:
            yield ContractError(
                f"{whose} has no name that tells it from others.",
                f"Give it a name of one line; {ANNOUNCEMENTS!r} is taken by the platform itself.",
                field="name",
            )
        if not _VARIABLE.fullmatch(self.url_env):
            # Not shown: it may be the address itself.
            yield ContractError(
                f"{whose} has a url_env that is no name of an environment variable.",
                "Write the variable's name, such as SALES_REFRESH_URL, and keep the address out of the code: it is a "
                "secret.",
                field="url_env",
            )
        if not self.owner.isprintable():
            yield ContractError(f"{whose} has no owner of one line.", "Write a name or an address.", field="owner")
        if self.page and origin_of(self.page) is None:
            # Not shown: an address that nobody can follow may hold a password.
            yield ContractError(
                f"{whose} has a page that is no address of the web.",
                "Write https://, a host and a path, without a user or a password: it is shown to everybody.",
                field="page",
            )
        if not self.reads:
            yield ContractError(f"{whose} reads nothing.", "Name the tables that it reads in `reads`.", field="reads")


def exposure_problems(exposures: Iterable[Exposure], tables: Collection[str]) -> Iterator[ContractError]:
    """Yield what is wrong between exposures, and between them and the tables that are declared."""
    names: set[str] = set()
    for exposure in exposures:
        if exposure.name in names:
            yield ContractError(f"Two exposures have the name {exposure.name!r}.", "Rename one of them.", field="name")
        names.add(exposure.name)
        for table in exposure.reads:
            if table not in tables:
                yield ContractError(
                    f"The exposure {exposure.name!r} reads {table}, which no domain declares.",
                    f"{did_you_mean(table, tables)}Name one of {', '.join(sorted(tables))}.",
                    field="reads",
                )
