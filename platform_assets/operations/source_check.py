"""Compare the contracts of raw tables with what their sources send now: the newest file, or a sample of a source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from platform_assets.contracts import Column, Contract, LandingFiles
from platform_assets.records.schema_drift import drift_in
from platform_assets.settings import Settings
from platform_assets.sources.inference import InferenceError, columns_in
from platform_assets.sources.inspect import inspect
from platform_assets.sources.kafka import RECORD
from platform_assets.sources.landing import LandedFile, at_hand, state_of
from platform_assets.sources.limits import Limits
from platform_assets.sources.listing import landing_area, list_landing
from platform_assets.sources.postgres import READING
from platform_assets.sources.source import Source, SourceError


@dataclass(frozen=True)
class SourceCheck:
    """What a source sends of a raw table.

    Args:
        looked_at: the newest file, or the folder of a source that is read; empty if there was nothing.
        wrong: why the file would be refused, or the source not read.
        drift: how columns differ from the contract's.
        proposed: declarations of columns that the contract lacks; of one that is missing, those that could be it.
    """

    table: str
    looked_at: str
    wrong: str = ""
    drift: tuple[str, ...] = ()
    proposed: tuple[Column, ...] = ()


def check_source(settings: Settings, contract: Contract) -> SourceCheck:
    """Look at what the source of a raw table sends, without taking it."""
    assert contract.source is not None
    limits = Limits.of(settings)
    try:
        with _newest(settings, contract, limits) as file:
            if file is None:
                return SourceCheck(contract.name, "")
            where = contract.source.folder if contract.source.is_read else file.path
            seen = inspect(file, _of_sample(contract), limits)
            drift = tuple(note for note in seen.notes if drift_in(note))
            new = {found.column for note in drift if (found := drift_in(note)) and found.kind == "extra"}
            return SourceCheck(contract.name, where, seen.reason or "", drift, _proposed(file, new))
    except SourceError as error:
        return SourceCheck(contract.name, contract.source.folder, f"{error.what} {error.todo}")


def _proposed(file: LandedFile, names: set[str]) -> tuple[Column, ...]:
    try:
        found = columns_in([file.file]) if names else ()
    except InferenceError:
        return ()
    places = ((column, ".".join(map(str, column.path)) or column.source_name or column.name) for column in found)
    return tuple(replace(column, may_be_absent=True) for column, place in places if place in names)


@contextmanager
def _newest(settings: Settings, contract: Contract, limits: Limits) -> Iterator[LandedFile | None]:
    source, today = contract.source, settings.current_day()
    assert source is not None
    with TemporaryDirectory(prefix="platform-assets-") as temporary:
        if isinstance(source, Source):
            folder = Path(temporary) / "sample" / today.isoformat()
            folder.mkdir(parents=True)
            file = _with_own(source.sample(folder), contract)
            state = state_of(file.stat())
            path = f"sample/{today}/{file.name}"
            yield LandedFile(path, file, today, "json", state[0], state[2], state) if state[0] else None
            return
        area = landing_area(settings)
        files = list_landing(area, source, {}, until=today, settle_s=settings.settle_s, limits=limits).pending
        newest = sorted(files, key=lambda each: (each.arrival_date, each.modified_ns, each.path))[-1:]
        with at_hand(newest, Path(temporary) / "fetched") as (here, problems):
            if problems:
                raise SourceError(f"{problems[0].path} {problems[0].message}.", "Run the same again.")
            yield here[0] if here else None


def _with_own(sample: Path, contract: Contract) -> Path:
    """Return a sample with the columns that a reading adds, by which a contract may have its key, or its days."""
    own = sorted({column.name for column in (*READING, *RECORD)} & {*contract.column_names})
    fields = ", ".join(f'"{name}": null' for name in own).encode()
    file = sample.with_name(f"rows-{sample.name}")
    with sample.open("rb") as lines, file.open("wb") as written:
        for line in filter(None, map(bytes.strip, lines)):
            more = b", " if own and line[1:-1].strip() else b""
            written.write(line[:-1] + more + fields + b"}\n")
    return file


def _of_sample(contract: Contract) -> Contract:
    """Return a contract whose source has delivered a sample, which is a file as others are."""
    source = contract.source
    if source is None or not source.is_read:
        return contract
    policy = "ignore" if source.drift_outcome == "left out" else source.schema_drift
    return replace(contract, source=LandingFiles(source.folder, schema_drift=policy, rescued_in=source.rescued_in))
