"""`demo --fresh`: removes what an earlier demo made and nothing else, also where it is killed on the way.

First all is looked at, and anything that may be somebody's refuses the whole. Then lake, ledger and Dagster's storage
are moved aside, so that nobody sees half of them, and of the landing area the sample's files are removed one by one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from platform_assets.cli.commands.demo_mark import Mark, marks
from platform_assets.cli.commands.demo_state import DemoError, clock_file, demo_here
from platform_assets.cli.console import errors, say
from platform_assets.places import folder_of
from platform_assets.settings import Settings

_ELSEWHERE = "Run the demo with a state folder of its own, and without a lake, landing folder or ledger elsewhere."
_IN_LAKE = (".parquet", ".json", ".crc")
"""Endings of what Spark, Delta and we write into a table, besides names that begin with a dot or an underscore."""
_INTERNAL = (*_IN_LAKE, ".lock", ".pause", ".draft", "lake_id")
"""Those of what the lake keeps beside its tables."""
_OF_DAGSTER = (".db", ".db-wal", ".db-shm", ".db-journal", ".out", ".err", ".complete")
"""Those of its databases, and of what it captured of runs."""
_NOT_REMOVED = (
    "Nothing was removed. Move what you need elsewhere and run it again; or remove the state folder yourself, if "
    "nothing in it is needed."
)


def is_half_removed(settings: Settings) -> bool:
    """Whether somebody asked to remove the demo that is here, and that was killed."""
    mark = Mark.of(settings.state)
    return mark is not None and mark.is_being_removed


def remove_demo(settings: Settings) -> None:
    """Remove what an earlier demo made; nothing is removed where anything of it could be somebody's own.

    Raises:
        DemoError: there is something that no demo made, or something of the demo lies outside its state folder.
    """
    mark = demo_here(settings)
    if mark is None:
        return
    _require_inside(settings)
    if mark.aside.is_symlink():
        raise DemoError(f"{mark.aside} is a link, which no demo makes.", _NOT_REMOVED)
    if foreign := next(_foreign(settings, mark), None):
        raise DemoError(f"{foreign}.", _NOT_REMOVED)
    replace(mark, is_being_removed=True).keep()
    _move_aside(settings, mark)
    kept = [*_remove_landed(settings.landing_folder, mark)]
    clock_file(settings).unlink(missing_ok=True)
    shutil.rmtree(mark.aside)
    mark.forget()
    dagster = settings.state / "dagster"
    kept += [dagster] if dagster.exists() else []
    errors.print("Removed the earlier demo.")  # what a program reads of the demo is on the other stream
    for path in kept:
        say("[yellow]kept[/]", f"{path}: no demo made it", to=errors)


def _ledger_files(settings: Settings) -> tuple[Path, ...]:
    """The ledger and what SQLite keeps beside it; none of a server."""
    from platform_assets.ledger.connection import parse_url, sqlite_file

    file = sqlite_file(parse_url(settings.ledger_url.get_secret_value()))
    return tuple(Path(f"{file}{ending}") for ending in ("", "-wal", "-shm", "-journal")) if file else ()


def _require_inside(settings: Settings) -> None:
    ledger = _ledger_files(settings)
    if not ledger:
        raise DemoError("The ledger is on a server, so the demo does not remove it.", _ELSEWHERE)
    for place in (settings.lake, settings.landing, str(settings.state / "dagster"), str(ledger[0])):
        folder = folder_of(place)
        if folder is None or settings.state.resolve() not in folder.resolve().parents:
            raise DemoError(
                f"{place} lies outside the state folder {settings.state}, so the demo does not remove it.", _ELSEWHERE
            )


def _foreign(settings: Settings, mark: Mark) -> Iterator[str]:
    """What in all that would be removed neither the demo nor the sample put there, in words."""
    from platform_assets.domains.retail.sample import look_over

    for path in look_over(settings.landing_folder).deliveries_of_others:
        yield f"{path} was not put there by a demo, or is another file by now"
    if mark.is_in(dagster := settings.state / "dagster"):
        yield from (f"{path} was not put there by a demo" for path in _foreign_in_folder(dagster, _OF_DAGSTER))
    if not settings.lake_folder.is_dir():  # moved aside by a removal that was killed
        return
    yield from (f"{path} was not put there by a demo" for path in _foreign_in_lake(settings.lake_folder))
    yield from _foreign_rows(settings)


def _foreign_in_lake(lake: Path) -> Iterator[Path]:
    from platform_assets.domains.retail import DOMAIN
    from platform_assets.lakehouse.layout import LAYERS, Lake
    from platform_assets.records.manifest import is_publication

    tables = {contract.table for contract in DOMAIN.tables}
    laid = Lake.at(lake)
    internal = (
        laid.releases_path,
        laid.publications_path,
        laid.locks_path,
        laid.private_path,
        laid.open_stages_path,
        laid.plans_path,
        laid.deletions_path,
        laid.horizon_file,
    )
    known = {*LAYERS, *(path.name for path in internal)}
    for path in sorted(lake.iterdir()):
        if path.is_symlink() or not (path.name in known or marks(path)):
            yield path
        elif path.name in LAYERS:
            for table in sorted(path.iterdir()):
                if table.is_symlink() or table.name not in tables:
                    yield table
                else:
                    for folder in sorted(table.iterdir()):
                        if folder.name == "_delta_log" or is_publication(folder.name):
                            yield from _foreign_in_folder(folder, _IN_LAKE)
                        else:
                            yield folder
        elif path.is_dir():
            yield from _foreign_in_folder(path, _INTERNAL)


def _foreign_in_folder(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """What nobody writes there who writes names with some endings."""
    for inside, folders, files in os.walk(folder):
        links = [Path(inside) / name for name in folders if (Path(inside) / name).is_symlink()]
        yield from links
        for name in sorted(files):
            if (Path(inside) / name).is_symlink() or (not name.endswith(endings) and name[0] not in "._"):
                yield Path(inside) / name


def _foreign_rows(settings: Settings) -> Iterator[str]:
    """Deliveries of others that the lake has taken: their files may be nowhere else by now."""
    from platform_assets.domains.retail.sample import is_of_sample, planned_paths
    from platform_assets.lakehouse.layout import Lake
    from platform_assets.lakehouse.releases import manifest_of, published
    from platform_assets.ledger.consistency import is_of_another_lake
    from platform_assets.ledger.ledger import Ledger

    lake, planned = Lake.at(settings.lake), planned_paths(settings.landing_folder)
    released = {publication: number for number, publication in published(lake)}
    for publication in released:
        for arrival in manifest_of(lake, publication).arrivals:
            if arrival.kind == "delivery" and not is_of_sample(arrival.path, arrival.modified_ns, planned):
                yield f"{settings.lake} holds what came with {arrival.path}, which no demo landed"
    file, *_ = _ledger_files(settings)
    if file.exists():
        with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
            if is_of_another_lake(ledger.indexed(), released):
                yield f"{file} is the ledger of another lake"


def _move_aside(settings: Settings, mark: Mark) -> None:
    """The ledger first: a lake without one gets it anew, and a ledger without its lake is refused."""
    mark.aside.mkdir(exist_ok=True)
    folders = [folder for folder in (settings.lake_folder, settings.state / "dagster") if mark.is_in(folder)]
    for path in (*_ledger_files(settings), *folders):
        if path.exists():
            # Another one may lie there, of a removal that was killed.
            path.rename(mark.aside / f"{path.name}-{token_hex(4)}")


def _remove_landed(landing: Path, mark: Mark) -> Iterator[Path]:
    """Remove what the sample landed in a landing area of the demo; gives what stays there."""
    from platform_assets.domains.retail.sample import look_over

    if not mark.is_in(landing):
        if landing.exists():
            yield landing
        return
    for path in look_over(landing).own:
        path.unlink()
    for folder, _, _ in os.walk(landing, topdown=False):
        if Path(folder) != landing and not any(Path(folder).iterdir()):
            Path(folder).rmdir()
    yield from (path for path in look_over(landing).others if not marks(path))
    mark.take_from(landing)
    if not any(landing.iterdir()):
        landing.rmdir()
