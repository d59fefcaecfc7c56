"""Inspect landed files before Spark reads them: columns, rows, and whether they can be ingested."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.contracts import Contract, LandingFiles
from platform_assets.contracts.landing import COMPRESSIONS
from platform_assets.records.raw_rows import ENDING
from platform_assets.records.schema_drift import wider_note
from platform_assets.sources.apart import UnendurableError, ahead, apart
from platform_assets.sources.columns import CsvColumns, JsonNames, drift_notes, renamed, wrong_columns
from platform_assets.sources.compression import ContentError, compression_in, compression_of, spark_unpacks
from platform_assets.sources.landing import NOT_AS_LISTED, LandedFile
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.parquet import (
    becomes_too_much,
    beyond,
    columns_of_source,
    depth,
    nanoseconds,
    rows_of,
    said_to_spark,
    too_large_footer,
    type_in_contracts,
    unknown_codec,
    unknown_encoding,
    unreadable_column,
    wrong_for_spark,
    wrong_types,
)
from platform_assets.sources.rewriting import is_rewritten, rewritten
from platform_assets.sources.text import AS_UTF_8, UNMARKED_UTF_16, EncodingError, Records, Scan, scan

_PATTERN = re.compile(r"[\\{}\[\]*?]")
_SHOWN = 300
"""Characters of a library's message, which may quote the file."""
_LONGEST_NAME = 255
"""Bytes of a file's name, on every system."""


@dataclass(frozen=True)
class Inspection:
    """Content of a file.

    Args:
        columns: names as delivered, in the file's order; for JSON lines the contract's, since each line names its own.
        schema: a text that equal Parquet schemas share; files of one layout are read together.
        landed: number of rows: records or lines of JSON that are not blank, or the number in the Parquet footer; for a
            file beyond a limit, as far as they were counted.
        reason: why the file is refused whole, if it is.
        is_read_as_lines: whether Spark reads it only as `sources.text` writes it: a record is broken, spans lines or
            has a zero within quotes, the format is not Spark's, or Spark cannot unpack it.
        nanoseconds: Parquet columns in nanoseconds, each with the text after its moments, as `Layout` has them.
    """

    columns: tuple[str, ...]
    schema: str
    landed: int
    reason: str | None = None
    notes: tuple[str, ...] = ()
    is_read_as_lines: bool = False
    nanoseconds: tuple[tuple[str, str], ...] = ()


def inspect(file: LandedFile, contract: Contract, limits: Limits = Limits()) -> Inspection:
    """Read just enough of a file to decide whether it can be ingested.

    Raises:
        ChangedError, LinkError: another file is in its place.
        OSError: it cannot be opened or read, which says nothing about its content.
    """
    if ":" in str(file.file) and _PATTERN.search(str(file.file)):
        return _refused("has a colon and one of {}[]*?\\ in its path, which Spark cannot open; rename it")
    try:
        match file.format:
            case "parquet":
                # Another process knows no class of a source, but what it declares.
                of_reading = contract.source.drift_outcome if contract.source and contract.source.is_read else ""
                return apart(_inspect_parquet, file, contract, limits, of_reading)
            case "csv":
                return _inspect_csv(file, contract, limits)
            case "json":
                return _inspect_json(file, limits, contract)
    except (*NOT_AS_LISTED, MemoryError):
        raise
    except (ContentError, LimitError, UnendurableError) as error:
        return _refused(str(error))
    except EncodingError as error:
        if not compression_of(file.file) and (ending := compression_in(file)):
            return _refused(f"is {COMPRESSIONS[ending]}; let its name say so: {file.file.name}{ending}")
        if error.encoding != "UTF-8" and file.format == "csv":
            what = f"is not {error.encoding} text: line {error.line} has the byte 0x{error.byte:02x}"
            return _refused(f"{what}; write it so, or correct the encoding in its contract")
        if error.is_utf16:
            return _refused(f"is UTF-16 text; {_in_utf_8(file)}")
        return _refused(f"is not UTF-8 text: line {error.line} has the byte 0x{error.byte:02x}; {_in_utf_8(file)}")
    except (TypeError, AttributeError, LookupError):  # whose words are about programs, not about the file
        return _refused(f"cannot be looked into: its metadata is not valid {file.format}; write it again")
    except Exception as error:  # noqa: BLE001 - libraries fail at hostile bytes in any way
        return _refused(f"cannot be looked into: {type(error).__name__}: {_first_line(error)}")


def _in_utf_8(file: LandedFile) -> str:
    return f"{AS_UTF_8}{', or declare its encoding by Csv(...)' if file.format == 'csv' else ''}"


def inspect_soon(files: Iterable[LandedFile]) -> None:
    """Start the processes that `inspect` needs for some files, without waiting."""
    if any(file.format == "parquet" for file in files):
        ahead(_inspect_parquet)


def _corrupt(error: Exception) -> str:
    return f"is corrupt: {_first_line(error)}"


def _is_of_the_system(error: Exception) -> bool:
    """Return whether the system failed, not the content of a file; Arrow's own errors about content have no number."""
    return isinstance(error, OSError) and error.errno is not None


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")[:_SHOWN]


def _refused(reason: str, landed: int = 0) -> Inspection:
    return Inspection((), "", max(landed, 0), reason)


def _judge(columns: tuple[str, ...], schema: str, landed: int, contract: Contract, *reasons: str | None) -> Inspection:
    reason = "; ".join(filter(None, reasons)) or None
    return Inspection(columns, schema, landed, reason, drift_notes(columns, contract))


def _inspect_parquet(file: LandedFile, contract: Contract, limits: Limits, of_reading: str) -> Inspection:
    """Inspect a file that was delivered, or of a reading, which has done with extra columns as `of_reading` says."""
    if of_reading and contract.source:
        contract = replace(contract, source=LandingFiles(contract.source.folder))
    with file.open() as stream:
        if reason := too_large_footer(stream, file.size):
            return _refused(reason)
        try:
            parquet = pq.ParquetFile(stream)
            if reason := beyond(parquet.metadata, file.size, limits):
                return _refused(reason, rows_of(parquet.metadata))
            landed = rows_of(parquet.metadata)
            schema = parquet.schema_arrow.remove_metadata()
            codec = unknown_codec(parquet.metadata) or unknown_encoding(parquet.metadata)
            said = said_to_spark(parquet.metadata)
        except MemoryError:  # which Arrow's own is, too
            raise
        except (pa.ArrowException, OSError) as error:
            if _is_of_the_system(error):
                raise
            return _refused(f"is not a Parquet file: {_first_line(error)}")
        except UnicodeDecodeError:
            return _refused("has a column whose name is not UTF-8; rename it")
        if reason := limits.too_nested(max((depth(field.type) for field in schema), default=0)):
            return _refused(reason, landed)
        names = renamed(schema.names, contract)
        types = dict(zip(names, map(type_in_contracts, schema.types), strict=True))
        types |= columns_of_source(parquet.metadata) if of_reading else {}
        wider = [note for c in contract.columns if (note := wider_note(c.name, types.get(c.name, ""), c.type))]
        fails = contract.source is not None and contract.source.schema_drift == "fail"
        reasons = (
            wrong_columns(names, contract),
            f"is wider than its contract: {'; '.join(wider)}; declare the wider type" if wider and fails else None,
            codec,
            unreadable_column(parquet.schema),
            wrong_types(pa.schema(map(pa.Field.with_name, schema, names)), contract),
        )
        reason = "; ".join(filter(None, reasons)) or wrong_for_spark(said, schema)
        if reason is None:
            try:
                reason = becomes_too_much(stream, parquet.metadata, file.size, limits)
            except MemoryError:
                raise
            except (pa.ArrowException, OSError) as error:
                if _is_of_the_system(error):
                    raise
                reason = _corrupt(error)
        inspection = _judge(names, schema.to_string() + said, landed, contract, reason)
        moments = nanoseconds(parquet.schema)
        return replace(
            inspection,
            notes=drift_notes(types, contract, wider, of_reading),
            nanoseconds=tuple((renamed([name], contract)[0], end) for name, end in moments),
        )


def _inspect_csv(file: LandedFile, contract: Contract, limits: Limits) -> Inspection:
    header, records = CsvColumns(contract, limits), Records()
    if is_anew := is_rewritten(file, contract, limits):
        seen = scan(file, header.look, None, limits, rewritten(file, contract, limits))
    else:
        seen = scan(file, header.look, records, limits)
    if not seen.lines and seen.wrong is None:
        return _refused("is empty: not even a header line")
    as_lines = is_anew or records.marked > 0 or not spark_unpacks(file.file)
    reasons = (header.wrong, seen.wrong, _too_long_to_copy(file) if as_lines else None)
    found = _judge(header.columns, header.line, max(seen.lines - 1, 0), contract, *reasons)
    return replace(found, is_read_as_lines=as_lines)


def _too_long_to_copy(file: LandedFile) -> str | None:
    most = _LONGEST_NAME - len(ENDING)
    if len(file.file.name.encode()) <= most:
        return None
    return f"has a name of more than {most} bytes, which leaves none to a copy with one record on each line; shorten it"


def _inspect_json(file: LandedFile, limits: Limits, contract: Contract) -> Inspection:
    as_lines = is_rewritten(file, contract, limits)
    names = JsonNames(contract, is_marked=as_lines)
    seen = scan(file, names.look, None, limits, rewritten(file, contract, limits) if as_lines else None)
    as_lines = as_lines or not spark_unpacks(file.file)
    if (reason := seen.wrong or names.missing()) is not None:
        return replace(_refused(reason, seen.lines), notes=names.notes)
    if seen.lines and not names.objects:
        # As with a header that names no column: nothing says that these were meant to be rows of the table.
        return _refused(_no_object(seen), seen.lines)
    if as_lines and (reason := _too_long_to_copy(file)):
        return _refused(reason, seen.lines)
    notes = names.notes if seen.lines else ("empty file: no rows",)
    return Inspection(contract.column_names, "", seen.lines, None, notes, as_lines)


def _no_object(seen: Scan) -> str:
    if b"\0" in seen.beginning:
        return UNMARKED_UTF_16
    return "has no line that is a JSON object; deliver one object per line"
