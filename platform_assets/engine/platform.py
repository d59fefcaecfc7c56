"""The platform as one value: settings, tables, lake and ledger; its transforms, and the commits of their code.

Transforms run in UTC: PySpark interprets `datetime(2017, 1, 1)` in the process's local time, not in the session's time
zone, so a day would differ between a laptop and a server.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.user_code import (
    UserCode,
    missing_function,
    parameters,
    reached_files,
    table_version,
    transform_module,
)
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.locks import stage_lock
from platform_assets.lakehouse.publish import recover
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.places import is_object_store, own_host, own_user
from platform_assets.planning.code.reach import transform_modules
from platform_assets.planning.configuration import Configuration, configuration
from platform_assets.planning.windows import Calendar
from platform_assets.quality.findings import Masking
from platform_assets.records.code_version import DIRTY, Version, hand_set
from platform_assets.records.manifest import DataFile, Decides, new_publication
from platform_assets.secret import installation_secret

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from platform_assets.ledger.ledger import Ledger
    from platform_assets.settings import Settings

_log = getLogger(__name__)


@dataclass(frozen=True)
class Author:
    """Author of work.

    Args:
        run: id of the run, Dagster's where there is one.
        who: author as stated; the operating system's user by default.
        decides: decision that a person makes with the work, if its kind does not say so.
    """

    run: str
    why: str
    who: str = field(default_factory=getpass.getuser)
    as_user: str = field(default_factory=own_user)
    on_host: str = field(default_factory=own_host)
    decides: Decides = ""

    def signature(self, now: datetime) -> dict[str, Any]:
        """Return the author as a signed decision records it."""
        return {
            "reason": self.why,
            "who": self.who,
            "created_at": now,
            "as_user": self.as_user,
            "on_host": self.on_host,
        }


def lake_to_write(settings: Settings) -> Lake:
    """Return the lake with its locks: in the ledger's database if it is a server, else in files.

    Lock files are in the lake; for an object store, in the state folder of this machine.
    """
    from platform_assets.ledger.connection import parse_url  # and SQLAlchemy, which no help needs

    url = parse_url(settings.ledger_url.get_secret_value())
    is_server = url.get_backend_name() == "postgresql"
    if is_server:
        return Lake.at(settings.lake, url.render_as_string(hide_password=False))
    lock_folder = located(settings.state / "locks") if is_object_store(settings.lake) else None
    return Lake.at(settings.lake, lock_folder=lock_folder)


@dataclass(frozen=True)
class Platform:
    """Everything the engine works with."""

    settings: Settings
    catalogue: Catalogue
    lake: Lake
    ledger: Ledger
    held: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)  # locks, until it is closed
    announced: list[int] = field(default_factory=list, repr=False, compare=False)  # numbers of verdicts

    @cached_property
    def lives_by(self) -> str:
        """Take a lock that ends with this process and shows others that it is alive; return its name."""
        self.held.enter_context(stage_lock(self.lake, name := new_publication()))
        return name

    @property
    def calendar(self) -> Calendar:
        """Return the days that exist today."""
        return Calendar(self.settings.calendar_first, self.settings.last_day())

    def counted_on(self, table: str, day: date) -> date:
        """Return the day on which raw rows count: before the calendar it is the calendar's first day."""
        return max(day, self.settings.calendar_first) if table in self.catalogue.histories else day

    @cached_property
    def masking(self) -> Masking:
        """Return how sensitive values are shown."""
        return Masking(installation_secret(self.settings))

    @cached_property
    def code_versions(self) -> dict[str, str]:
        """Return the code version of every table with a transform."""
        return code_versions(self.catalogue)

    @cached_property
    def git_commits(self) -> dict[str, str]:
        """Return the commit of every table's code, over the files that it can reach."""
        commits = Commits()
        return {
            contract.name: commits.of(reached_files(code, domain, contract))
            for domain in self.catalogue.domains
            for code in [UserCode(domain)]
            for contract in domain.tables
            if contract.inputs
        }

    @cached_property
    def configurations(self) -> dict[str, Configuration]:
        """Return the configuration of every table's contract."""
        return {contract.name: configuration(self.catalogue, contract) for contract in self.catalogue}

    @cached_property
    def remembered_files(self) -> Callable[[str, int], Mapping[date, tuple[DataFile, ...]]]:
        """Return a small cache for the live files of each day of a table version, which a step needs often."""
        return lru_cache(maxsize=16)(lambda table, version: live_files(self.lake.table_path(table), version))

    def version(self, table: str) -> Version:
        """Return the version that computes a table today."""
        return Version(self.code_versions[table], self.configurations[table].hash)

    @property
    def versions(self) -> dict[str, Version]:
        """Return the version that computes every table with a transform today."""
        return {table: self.version(table) for table in self.code_versions}

    def current_release(self) -> Release:
        """Return the current release, fully indexed in the ledger, so that decisions use both at one moment.

        Another process may have released without indexing yet, or died before it could.
        """
        now = current_release(self.lake)
        if not self.ledger.knows(now.number):
            self.sync()
        return now

    def sync(self) -> None:
        """Index publications of other processes."""
        from platform_assets.ledger.sync import sync

        sync(self.lake, self.ledger)

    def settle(self) -> None:
        """Finish and index what dead publishers began, before decisions about the current state.

        Raises:
            PlatformError: another tool changed a table, or the publish lock is taken.
        """
        recover(self.lake)
        self.sync()


def code_versions(catalogue: Catalogue) -> dict[str, str]:
    """Return the code version of every table with a transform: set by hand, or the hash of all code it can reach.

    Raises:
        ContractError: a domain's transforms are missing, or source that they reach cannot be read.
    """
    versions: dict[str, str] = {}
    for domain in catalogue.domains:
        code = UserCode(domain)
        for contract in domain.tables:
            if contract.inputs:
                by_hand = contract.code_version or domain.code_version
                versions[contract.name] = (
                    table_version(code, domain, contract) if by_hand is None else hand_set(by_hand)
                )
    return versions


def transform_of(catalogue: Catalogue, contract: Contract) -> Callable[..., DataFrame]:
    """Return the function of a table: `<transforms>.<layer>.<table>` of its domain, or one for its query.

    The domain's other transforms are imported with it, always in the same order: effects of imports must not depend on
    the tables that a process computes. From then on the local time of this process is UTC.

    Raises:
        ContractError: there is no such function, or its parameters are not the contract's inputs.
    """
    domain = catalogue.domain_of(contract.name)
    module = transform_module(domain, contract)
    _use_utc()
    for name in transform_modules(domain.transforms):
        if find_spec(name):
            import_module(name)
    if (query := UserCode(domain).query(contract)) is not None:
        from platform_assets.spark.windows import query_transform  # and Spark, which no plan needs

        return query_transform(contract.name, contract.column_names, query.statement, query.file)
    function = getattr(import_module(module), contract.table, None)
    if not callable(function) or _parameters(function) != parameters(contract):
        raise missing_function(contract, module)
    return cast("Callable[..., DataFrame]", function)


def _parameters(function: Callable[..., object]) -> list[str] | None:
    """Return the names of parameters if each can be given by name, and there are no others."""
    try:
        declared = signature(function).parameters.values()
    except ValueError:  # unknown for a function that is not Python
        return None
    by_name = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    return (
        [parameter.name for parameter in declared] if all(parameter.kind in by_name for parameter in declared) else None
    )


class Commits:
    """Commits of several tables' code, cached, since most tables share code."""

    def __init__(self) -> None:
        self._git = shutil.which("git")
        self._said: dict[tuple[Path, tuple[str, ...]], str | None] = {}

    def of(self, files: Iterable[Path]) -> str:
        """Return the commit of the repository that tracks some files, marked if one of them differs from it.

        Ignored files, and files outside any repository such as installed packages, do not count. Commits of several
        repositories are joined by commas, in order of their folders. A link counts as its target: the repository with
        the link contains only the link, not the code.

        Returns:
            Empty where no repository tracks any, or there is no git.
        """
        by_folder: defaultdict[Path, list[Path]] = defaultdict(list)
        for file in {file.resolve() for file in files}:
            by_folder[file.parent].append(file)
        by_repository: defaultdict[str, list[Path]] = defaultdict(list)
        for folder in sorted(by_folder) if self._git else ():
            if (root := self._asked(folder, "rev-parse", "--show-toplevel")) is not None:
                by_repository[root] += by_folder[folder]
        commits = (self._commit_in(Path(root), of_root) for root, of_root in sorted(by_repository.items()))
        return ", ".join(commit for commit in commits if commit)

    def _commit_in(self, root: Path, files: list[Path]) -> str | None:
        named = [str(file) for file in sorted(files)]
        if not self._asked(root, "ls-files", "--", *named):
            return None
        head = self._asked(root, "rev-parse", "HEAD")
        if not head:
            return None  # added, and nothing was ever committed
        # Untracked files that are not ignored are part of the code and not of the commit.
        return head + DIRTY if self._asked(root, "status", "--porcelain", "--", *named) else head

    def _asked(self, folder: Path, *question: str) -> str | None:
        """Return git's answer; None outside of a repository or in one that belongs to another user."""
        if (folder, question) not in self._said:
            command = [self._git or "git", "--no-optional-locks", *question]
            # Where git itself started this, as in a hook, it has said which repository it means.
            own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
            asked = folder.is_dir() and subprocess.run(
                command, cwd=folder, env=own, capture_output=True, text=True, check=False
            )
            self._said[folder, question] = asked.stdout.strip() if asked and asked.returncode == 0 else None
        return self._said[folder, question]


def _use_utc() -> None:
    if os.environ.get("TZ") != "UTC":
        os.environ["TZ"] = "UTC"
        time.tzset()
