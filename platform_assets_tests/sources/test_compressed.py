"""A gzip file is what is in it; one that is damaged, misnamed or a bomb is refused by name."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from platform_assets.contracts import Column, Contract, LandingFiles
from platform_assets.contracts.landing import format_of
from platform_assets.sources.area import FolderArea
from platform_assets.sources.inspect import Inspection, inspect
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.listing import list_landing
from platform_assets.sources.text import lines_of

CONTRACT = Contract(
    name="raw.visits",
    description="Visits.",
    owner="tests@example.com",
    columns=(
        Column("id", "long", "Number.", nullable=False),
        Column("at", "timestamp", "When.", nullable=False),
        Column("paid", "decimal(12,2)", "Dollars."),
        Column("note", "string", "Words."),
    ),
    key=("id",),
    source=LandingFiles("visits"),
    event_time="at",
)
HEADER = "id,at,paid,note"
ROW = "1,2017-01-01T10:00:00Z,2.50,hello"

CSV = f"{HEADER}\n{ROW}\n{ROW}\n".encode()
JSON = b'{"id": 1, "at": "2017-01-01T10:00:00Z", "paid": 2.5, "note": "hello"}\n'
packed = partial(gzip.compress, mtime=0)  # the same bytes in every process, since tests are named after them
PACKED = packed(CSV)


@pytest.fixture
def look(tmp_path: Path):
    def inspected(name: str, content: bytes, **bounds: int) -> Inspection:
        return inspect(landed(tmp_path, name, content), CONTRACT, Limits(**bounds))

    return inspected


def landed(root: Path, name: str, content: bytes):
    file = root / "visits" / "2017-01-01" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    assert CONTRACT.source is not None
    [found] = list_landing(FolderArea(root), CONTRACT.source, {}, until=date(2017, 1, 1), settle_s=0).pending
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv.gz", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.jsonl.gz", "json"),
        ("a.b.ndjson.gz", "json"),
        ("a.json.gz", "json"),
        ("a.json", "json"),
        ("a.parquet", "parquet"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("csv.gz", None),
        ("csv", None),
    ],
)
def test_a_text_file_may_be_compressed_and_its_ending_says_so(name, kind):
    assert format_of(name) == kind


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv.gz", PACKED, 2),
        ("a.CSV.GZ", PACKED, 2),
        ("a.csv.gz", packed(CSV[:40]) + packed(b"") + packed(CSV[40:]), 2),
        ("a.jsonl.gz", packed(JSON * 3), 3),
        ("a.json.gz", packed(b""), 0),
    ],
)
def test_a_compressed_file_has_the_rows_that_are_in_it(look, name, content, rows):
    found = look(name, content)
    assert (found.reason, found.landed) == (None, rows)
    assert found.is_read_as_lines == name.endswith("GZ")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv.gz", b"", "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", PACKED[:-3], "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", PACKED[:30], "is gzip that was cut short; deliver it whole"),
        ("a.jsonl.gz", packed(JSON) + packed(JSON)[:20], "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", CSV, "is not gzip, though its name ends with .gz"),
        ("a.csv.gz", PACKED[:20] + b"\xff" * 20 + PACKED[40:], "is damaged gzip: "),
        ("a.csv.gz", PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "is damaged gzip: "),
        ("a.csv.gz", PACKED + b"more", "is damaged gzip: something else lies behind it"),
        ("a.CSV.GZ", PACKED + b"\0" * 512, "is damaged gzip: something else lies behind it"),
        ("a.csv.gz", packed(PACKED), "is not UTF-8 text: line 1 has the byte 0x8b"),
        ("a.csv.gz", packed(b"PAR1\x15\x04\xff"), "is not UTF-8 text: "),
        ("a.csv.gz", packed(JSON), "lacks the column id, at, paid, note; "),
        ("a.jsonl.gz", packed(b"[" + JSON + b"]"), "is a JSON array; "),
        ("a.csv", PACKED, "is gzip; let its name say so: a.csv.gz"),
    ],
)
def test_a_compressed_file_that_is_not_what_its_name_says_is_refused(look, name, content, reason):
    assert (look(name, content).reason or "").startswith(reason)


def test_a_small_file_that_becomes_too_large_is_refused_before_it_does(look, tmp_path):
    bomb = packed(CSV + b"1,2,3,x\n" * (1 << 23), compresslevel=1)
    tracemalloc.start()
    try:
        found = look("a.csv.gz", bomb, unpacked_ratio=50)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    most = max(50 * len(bomb), 1 << 26)
    assert found.reason == (
        f"becomes more than {most:,} bytes unpacked, 50 times its size; "
        "deliver it in parts, or set PLATFORM_UNPACKED_RATIO higher and deliver it anew"
    )
    assert peak < 1 << 24
    with pytest.raises(LimitError):
        sum(map(len, lines_of(landed(tmp_path, "a.csv.gz", bomb), Limits(unpacked_ratio=50))))
    assert look("a.csv.gz", bomb, unpacked_ratio=1000).reason is None


def test_a_compressed_file_with_records_that_span_lines_is_read_as_lines(look, tmp_path):
    content = packed(CSV + b'1,2017-01-01T10:00:00Z,2.50,"two\nlines"\n')
    found = look("a.csv.gz", content)
    assert (found.reason, found.landed, found.is_read_as_lines) == (None, 3, True)
    copy = b"".join(lines_of(landed(tmp_path, "a.csv.gz", content)))
    assert len(copy.splitlines()) == 4
