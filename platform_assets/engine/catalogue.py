"""Tables of all configured domains, and mistakes in them: where, and what to do."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from platform_assets.contracts import Catalogue, Contract, ContractError, Domain
from platform_assets.contracts.errors import gathering
from platform_assets.errors import PlatformError, users_frames, users_line
from platform_assets.project import make_importable

if TYPE_CHECKING:
    from platform_assets.settings import Settings


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A mistake in a domain that keeps a table from being computed.

    Args:
        place: file and line, if known.
        table: table whose contract or transform has it.
        field: field of the contract; or the column, rule, amount or parameter.
    """

    what: str
    todo: str
    package: str
    place: str | None = None
    table: str | None = None
    field: str | None = None
    error: PlatformError | None = dataclasses.field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: PlatformError, package: str, place: str | None = None, table: str | None = None) -> Mistake:
        """Return the mistake of an error, with the place unless the error names it already."""
        table = getattr(error, "table", None) or table
        place = (
            place
            or getattr(error, "place", None)
            or (users_line(error.__cause__, package) if error.__cause__ else None)
        )
        is_told = place is None or ", line " not in place or place in error.what
        what = error.what if is_told else f"{error.what} It is declared in {place}."
        return cls(what, error.todo, package, place, table, getattr(error, "field", None), error)

    def json(self) -> dict[str, str | None]:
        """Return its fields as JSON."""
        names = ("package", "place", "table", "field", "what", "todo")
        return {name: getattr(self, name) for name in names}


class MistakesError(ContractError):
    """Domains have several mistakes."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(
            f"{len(mistakes)} things are wrong in the domains; nothing was done.",
            "Correct them; `platform-assets check` shows whether all is well.",
            lines=[
                line
                for number, mistake in enumerate(mistakes, 1)
                for line in (f"{number}. {mistake.what}", f"   {mistake.todo}")
            ],
        )
        self.mistakes = tuple(mistakes)


def refuse_mistakes(mistakes: Sequence[Mistake]) -> None:
    """Raise all mistakes at once.

    Raises:
        MistakesError: there are several.
        PlatformError: there is one, as its own error.
    """
    distinct = list(dict.fromkeys(mistakes))
    if len(distinct) > 1:
        raise MistakesError(distinct) from distinct[0].error
    for mistake in distinct:
        if isinstance(mistake.error, ContractError):
            error = mistake.error
            raise ContractError(
                mistake.what, error.todo, table=error.table, field=error.field, place=mistake.place
            ) from (error.__cause__ or error)
        if mistake.error is not None:
            raise mistake.error


def mistakes_in(error: PlatformError, package: str = "") -> tuple[Mistake, ...]:
    """Return the mistakes in an error: all of a `MistakesError`, else the error itself as one."""
    return error.mistakes if isinstance(error, MistakesError) else (Mistake.of(error, package),)


_DELETES = re.compile(r"(?i)delete|void|tombstone|(<>|!=|\bnot\b).*'(d|del|removed?)'")
"""Looks like a rule by which deleted rows are left out."""


def advice(catalogue: Catalogue, tables: Collection[str]) -> Iterator[Mistake]:
    """Yield advice where a contract lets a deleted or moved record still count."""
    for contract in catalogue:
        if contract.name not in tables or contract.layer != "silver":
            continue
        source, package = catalogue[contract.inputs[0].table], catalogue.domain_of(contract.name).transforms
        for rule in contract.quarantine_rules if source.voided is None else ():
            if rule.breach == "skip" and _DELETES.search(rule.kind.text):
                what = (
                    f"the rule {rule.name!r} of {contract.name} ({rule.kind.text}) looks as if it left out deleted "
                    "rows. A row that breaks a rule is skipped, and the older version of its key counts again."
                )
                todo = f"Declare the delete on {source.name}, as voided=\"op = 'D'\"."
                yield Mistake(what, todo, package, table=source.name, field="voided")
        if may_move(contract, catalogue) and source.moves_within_days == 0:
            time = source.event_time
            what = f"moves_within_days=0 says that no key's {time} is corrected to another day: it would count twice."
            todo = f"Set it to how far {time} can move; or add {time} to the key, if keys have a row on many days."
            yield Mistake(what, todo, package, table=source.name, field="moves_within_days")


def may_move(contract: Contract, catalogue: Catalogue) -> bool:
    """Return whether a key of a silver table should be on one day, although its event time can be corrected.

    A key that contains the event time does not move. Without `updated_at` a key may well have a row on every day.
    """
    if contract.layer != "silver":
        return False
    source = catalogue[contract.inputs[0].table]
    can_be_corrected = bool(contract.key and (source.updated_at or source.moves_within_days))
    return can_be_corrected and source.event_time not in {*source.key, *contract.key}


def load_catalogue(settings: Settings) -> Catalogue:
    """Return the tables of all domains named in the settings.

    Raises:
        ContractError: a domain cannot be imported or contradicts itself.
        MistakesError: several things are wrong; it names them all.
    """
    make_importable()
    mistakes: list[Mistake] = []
    domains: list[Domain] = []
    catalogue: Catalogue | None = None
    for package in settings.domains:
        with _told(package) as told:
            domains.append(_load_domain(package))
        mistakes += told
    if not mistakes:
        # A mistake in one domain would be reported again as missing from another.
        with gathering() as gathered:
            try:
                catalogue = Catalogue.of(domains)
            except ValueError:  # of tables in a circle there is no order
                assert gathered
        mistakes += [Mistake.of(found.error, _package_of(settings, domains, found.error)) for found in gathered]
    refuse_mistakes(mistakes)
    assert catalogue is not None
    return catalogue


@contextmanager
def _told(package: str) -> Iterator[list[Mistake]]:
    """Collect mistakes of a package while it is loaded. Modules with a mistake are imported again next time."""
    mistakes: list[Mistake] = []
    before = set(sys.modules)
    with gathering() as gathered:
        try:
            yield mistakes
        except ContractError as error:
            mistakes.append(Mistake.of(error, package))
    for number, found in enumerate(gathered):
        users = users_frames(found.frames, package)
        place = f"{users[-1][0].f_code.co_filename}, line {users[-1][1]}" if users else None
        mistakes.insert(number, Mistake.of(found.error, package, place))
    broken = {str(frame.f_globals.get("__name__")) for found in gathered for frame, _ in found.frames}
    for name in broken & (set(sys.modules) - before):
        del sys.modules[name]


def _package_of(settings: Settings, domains: list[Domain], error: ContractError) -> str:
    """Return the package that declares a table of several domains."""
    by_domain = zip(settings.domains, domains, strict=True)
    return next(
        (package for package, domain in by_domain if error.table in {contract.name for contract in domain.tables}),
        ", ".join(settings.domains),
    )


def _load_domain(package: str) -> Domain:
    domain = getattr(_load_module(package), "DOMAIN", None)
    if not isinstance(domain, Domain):
        problem = "exports no DOMAIN" if domain is None else f"exports a {type(domain).__name__} as DOMAIN"
        raise ContractError(
            f"The domain {package!r} cannot be loaded: it {problem}.",
            "Name a package that exports DOMAIN in `domains` of platform.toml, or in PLATFORM_DOMAINS.",
        )
    return domain


def _load_module(package: str) -> ModuleType:
    """Import a user's package, whose code may raise any exception."""
    try:
        return import_module(package)
    except (Exception, SystemExit) as error:
        if _is_absent(package, error):
            raise ContractError(
                f"The domain {package!r} cannot be loaded: {error}.",
                "Name a package that exports DOMAIN in `domains` of platform.toml or in PLATFORM_DOMAINS. Python finds "
                "packages beside platform.toml, installed ones, and those in a folder of PYTHONPATH.",
            ) from error
        said = error.what if isinstance(error, PlatformError) else getattr(error, "msg", None) or str(error)
        raise ContractError(
            f"The domain {package!r} cannot be loaded: {type(error).__name__} in {users_line(error, package)}: "
            f"{str(said).rstrip('.')}.",
            "Correct that line; the domain's package has to be importable by itself.",
        ) from error


def _is_absent(package: str, error: BaseException) -> bool:
    """Return whether the setting's package is missing or has an invalid name, as opposed to an import inside of it."""
    if isinstance(error, ModuleNotFoundError):
        return f"{package}.".startswith(f"{error.name}.")
    return not all(part.isidentifier() for part in package.split("."))
