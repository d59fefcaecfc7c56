"""Every delivery is taken once and whole, later, or named with the reason why not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from platform_assets.contracts import LandingFiles
from platform_assets.sources import landing, listing
from platform_assets.sources.landing import Hashes, Known, LandedFile, Listing, Problem, changed_since, hashed
from platform_assets.sources.limits import Limits
from platform_assets.sources.listing import FolderArea, list_landing

DAY = "2017-01-02"
UNTIL = date(2017, 1, 5)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "landing"


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A landing root that somebody else can look into."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in (folder, folder / "sales", folder / "sales" / DAY):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        yield folder


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may look everywhere; become a user who may not."""
    user = os.geteuid()
    if not user:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose content was read, as often as it was."""
    seen: list[Path] = []
    read = landing.sha256_of

    def counted(file: Path, path: str, state: landing.State) -> str:
        seen.append(file)
        return read(file, path, state)

    monkeypatch.setattr(landing, "sha256_of", counted)
    return seen


@pytest.fixture
def rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had not been touched for longer than its file system could fail to tell."""
    monkeypatch.setattr(landing, "RESTS_NS", 0)


def deliver(root: Path, name: str, content: bytes = b"a\n1\n", *, day: str = DAY, age_s: float = 60) -> Path:
    file = root / "sales" / day / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    when = time.time() - age_s
    os.utime(file, (when, when))
    return file


def look(
    root: Path,
    known: dict[str, Known] | None = None,
    settle_s: float = 2,
    complete: str | None = None,
    hashes: Hashes | None = None,
    among: set[str] | None = None,
) -> Listing:
    source = LandingFiles("sales", complete)
    own = hashes or Hashes()
    return list_landing(FolderArea(root), source, known or {}, until=UNTIL, settle_s=settle_s, hashes=own, among=among)


def remembered(files: Iterable[LandedFile], *, refused: bool = False) -> dict[str, Known]:
    taken, problems = hashed(files)
    assert not problems
    return {file.path: Known(file.size, file.modified_ns, file.sha256, refused) for file in taken}


def said(listing: Listing) -> dict[str, str]:
    return {problem.path: problem.message for problem in (*listing.problems, *listing.growing)}


def test_a_file_is_known_by_path_size_and_sha256(root):
    deliver(root, "a.csv", b"abc")
    [file] = look(root).pending
    assert (file.path, file.arrival_date, file.format, file.size) == (f"sales/{DAY}/a.csv", date(2017, 1, 2), "csv", 3)
    [[taken], _] = hashed([file])
    assert taken.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_is_pending_until_it_was_taken_and_then_never_again(root):
    deliver(root, "a.csv")
    [file] = look(root).pending
    assert look(root, remembered([file])) == Listing((), (), (), frozenset({date(2017, 1, 2)}))


def test_a_file_touched_without_a_change_is_not_taken_again(root):
    file = deliver(root, "a.csv")
    known = remembered(look(root).pending)
    os.utime(file, (1, 1))
    listing = look(root, known)
    assert not listing.pending
    assert not said(listing)


def test_a_file_taken_and_then_removed_is_no_problem(root):
    deliver(root, "a.csv").unlink()
    assert not said(look(root))


def test_the_same_content_under_two_names_is_two_deliveries(root):
    deliver(root, "a.csv")
    deliver(root, "b.csv")
    pending = look(root).pending
    assert [file.path[-5:] for file in pending] == ["a.csv", "b.csv"]
    assert len({file.sha256 for file in hashed(pending)[0]}) == 1


def test_a_file_that_changed_just_now_is_left_for_later(root):
    file = deliver(root, "a.csv", age_s=0)
    listing = look(root, settle_s=30)
    assert not listing.pending
    [problem] = listing.growing
    assert problem.message.startswith("is still growing")
    assert listing.delivered == frozenset()
    os.utime(file, (time.time() - 31,) * 2)
    assert len(look(root, settle_s=30).pending) == 1


def test_a_file_changed_just_now_by_a_clock_a_moment_ahead_is_left_for_later(root):
    deliver(root, "a.csv", age_s=-1)
    assert not look(root).pending
    assert said(look(root))[f"sales/{DAY}/a.csv"].startswith("is still growing, changed 0.0 s ago")


def test_a_file_of_the_same_size_and_time_in_place_of_one_that_was_looked_at_is_another(root):
    first = deliver(root, "a.csv", b"a\n1\n")
    [listed] = hashed(look(root).pending)[0]
    other = deliver(root, "other", b"a\n2\n")
    when = first.stat().st_mtime_ns
    os.utime(other, ns=(when, when))
    other.replace(first)
    assert [*changed_since([listed])] == [listed]
    assert hashed([listed])[1] == [Problem(listed.path, "is still growing, changed while it was read", is_growing=True)]


@pytest.mark.parametrize("closed", ["", "sales", f"sales/{DAY}"])
@pytest.mark.parametrize("complete", [None, "_SUCCESS", ".done"])
def test_a_folder_that_may_not_be_listed_is_named_and_stops_nothing(
    open_root: Path, complete: str | None, closed: str
) -> None:
    deliver(open_root, "a.csv")
    (open_root / closed).chmod(0)
    with as_somebody_else():
        listing = look(open_root, complete=complete)
    (open_root / closed).chmod(0o755)
    assert (listing.pending, listing.delivered) == ((), frozenset())
    named = closed or "sales"
    assert said(listing)[named] == "cannot be listed: Permission denied; give this user the right to read it"


def test_a_file_that_grows_while_it_is_read_is_left_for_later(root):
    file = deliver(root, "a.csv")
    os.truncate(file, 200 << 20)
    listed = look(root, settle_s=0).pending
    stop = threading.Event()

    def write() -> None:
        with file.open("ab") as stream:
            while not stop.wait(0.002):
                stream.write(b"x")
                stream.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        taken = hashed(listed)
    finally:
        stop.set()
        writer.join()
    assert taken == (
        [],
        [Problem(f"sales/{DAY}/a.csv", "is still growing, changed while it was read", is_growing=True)],
    )


def test_a_file_replaced_after_it_was_taken_is_not_taken_and_both_versions_are_named(root):
    deliver(root, "a.csv", b"first")
    known = remembered(look(root).pending)
    [first] = known.values()
    deliver(root, "a.csv", b"another", age_s=50)
    listing = look(root, known)
    assert not listing.pending
    [problem] = listing.problems
    assert problem.message.startswith(f"was replaced: 5 bytes with sha256 {first.sha256[:12]} were taken")
    assert "now there are 7 bytes with" in problem.message
    assert problem.message.endswith("deliver a correction under a new name, or give this file one")
    assert problem.is_replaced


def test_a_listing_reads_no_file_however_large(root, reads):
    os.truncate(deliver(root, "a.csv"), 1 << 32)
    os.utime(root / "sales" / DAY / "a.csv", (1, 1))
    [file] = look(root).pending
    assert (file.size, file.sha256, reads) == (1 << 32, "", [])


@pytest.mark.parametrize("refused", [False, True])
def test_only_a_file_that_was_touched_since_is_read_and_once(root, reads, refused, rested, tmp_path):
    state = tmp_path / "hashed.json"
    file = deliver(root, "a.csv", b"first")
    deliver(root, "b.csv", b"second")
    known = remembered(look(root).pending, refused=refused)
    reads.clear()
    assert not look(root, known).pending
    assert reads == []
    os.utime(file, (1, 1))
    assert [look(root, known, hashes=Hashes(state)).pending for _ in range(3)] == [()] * 3, "each as another process"
    assert reads == [file]
    file.write_bytes(b"FIRST")
    os.utime(file, (2, 2))
    listings = [look(root, known, hashes=Hashes(state)) for _ in range(3)]
    assert reads == [file, file]
    assert [len(listing.pending) for listing in listings] == [int(refused)] * 3
    assert [len(listing.problems) for listing in listings] == [int(not refused)] * 3


def test_who_asks_about_some_files_is_told_of_these_alone_and_no_other_is_read(root, reads):
    files = [deliver(root, "a.csv"), deliver(root, "b.csv"), deliver(root, "a.csv", day="2017-01-03")]
    known = remembered(look(root).pending)
    reads.clear()
    for file in files:
        file.write_bytes(b"another")
        os.utime(file, (1, 1))
    deliver(root, "new.csv")
    deliver(root, "a.csv", day="no date")
    named = {f"sales/{DAY}/a.csv", f"sales/{DAY}/gone.csv", "sales/2017-01-04/a.csv", f"elsewhere/{DAY}/a.csv"}
    listing = look(root, known, among=named)
    assert (listing.pending, listing.growing, listing.delivered) == ((), (), frozenset())
    assert [(problem.path, problem.is_replaced) for problem in listing.problems] == [(f"sales/{DAY}/a.csv", True)]
    assert reads == [files[0]]


def test_a_version_that_the_next_could_not_be_told_from_is_read_again(root, reads, tmp_path):
    file = deliver(root, "a.csv", b"first")
    known = remembered(look(root).pending)
    os.utime(file, (1, 1))
    reads.clear()
    own = Hashes(tmp_path / "hashed.json")
    for _ in range(2):
        look(root, known, hashes=own)
    assert reads == [file, file], "its inode changed less than two seconds ago"


@pytest.mark.parametrize("kept", [b"", b"{", b"[]", b'{"a": 1}', b'{"a": [[1, 2, 3], "x"]}', b"\xff", b"[" * 100_000])
def test_what_is_remembered_and_cannot_be_read_costs_a_look(root, reads, tmp_path, rested, kept):
    state = tmp_path / "hashed.json"
    state.write_bytes(kept)
    file = deliver(root, "a.csv", b"first")
    known = remembered(look(root).pending)
    os.utime(file, (1, 1))
    reads.clear()
    for _ in range(2):
        assert not said(look(root, known, hashes=Hashes(state)))
    assert reads == [file]


def test_what_is_taken_is_hashed_whatever_is_remembered(root, tmp_path, rested):
    file = deliver(root, "a.csv", b"first")
    own = Hashes(tmp_path / "hashed.json")
    [landed] = look(root, hashes=own).pending
    own.learn(file, landed.state, "0" * 64)
    own.keep()
    [[taken], _] = hashed(look(root, hashes=own).pending)
    assert taken.sha256 == "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"


def test_a_file_that_cannot_be_opened_is_a_problem_and_no_end(root, monkeypatch):
    deliver(root, "a.csv")
    deliver(root, "b.csv")

    def refuse(*_: object) -> object:
        raise PermissionError(13, "Permission denied")

    def listed() -> Listing:
        with monkeypatch.context() as patch:
            patch.setattr(listing, "expect_open", refuse)
            return look(root)

    assert said(listed()) == {f"sales/{DAY}/{name}": "cannot be read: Permission denied" for name in ("a.csv", "b.csv")}


def test_a_file_that_goes_between_the_listing_and_the_reading_keeps_no_other_from_being_taken(root):
    deliver(root, "a.csv")
    deliver(root, "b.csv")
    pending = look(root).pending
    (root / "sales" / DAY / "a.csv").unlink()
    [[taken], [problem]] = hashed(pending)
    assert (taken.path, problem.path) == (f"sales/{DAY}/b.csv", f"sales/{DAY}/a.csv")
    assert (problem.message, problem.is_growing) == ("cannot be read: No such file or directory", False)


def test_a_refused_file_is_left_alone_until_it_is_repaired(root):
    deliver(root, "a.csv", b"broken")
    known = remembered(look(root).pending, refused=True)
    listing = look(root, known)
    assert not listing.pending
    assert listing.delivered == frozenset()
    deliver(root, "a.csv", b"mended", age_s=50)
    [file] = look(root, known).pending
    assert file.size == 6


def test_whoever_changes_a_file_after_it_was_hashed_is_noticed(root):
    file = deliver(root, "a.csv")
    [landed] = hashed(look(root).pending)[0]
    assert not changed_since([landed])
    file.write_bytes(b"longer than before")
    assert changed_since([landed])[landed].is_growing
    file.unlink()
    assert changed_since([landed])[landed].message == "cannot be read: No such file or directory"


def test_content_that_is_another_under_the_same_state_is_noticed(root):
    """No tool leaves size, inode and both times as they were, but a file system with coarse times may."""
    deliver(root, "a.csv", b"a\n1\n")
    [landed] = hashed(look(root).pending)[0]
    assert [*changed_since([replace(landed, sha256="another")])] == [replace(landed, sha256="another")]


LINK = "is a symbolic link; only files inside the landing root are taken"


@pytest.mark.parametrize("swapped", ["a.csv", DAY])
def test_a_link_put_in_place_of_what_was_listed_is_not_followed(root, tmp_path, swapped):
    """The very file that was listed, moved out of the landing root: its size, time and inode are as they were."""
    deliver(root, "a.csv")
    deliver(root, "b.csv", day="2017-01-03")
    listed = look(root).pending
    [before, other] = hashed(listed)[0]
    there = root / "sales" / DAY / "a.csv" if swapped == "a.csv" else root / "sales" / DAY
    there.rename(tmp_path / "elsewhere")
    there.symlink_to(tmp_path / "elsewhere")
    taken, problems = hashed(listed)
    assert [file.path for file in taken] == ["sales/2017-01-03/b.csv"]
    assert [(problem.path, problem.message, problem.is_growing) for problem in problems] == [(before.path, LINK, False)]
    assert {file.path: problem.message for file, problem in changed_since([before, other]).items()} == {
        before.path: LINK
    }


def test_a_source_folder_that_became_a_link_out_of_the_landing_root_is_not_followed(root, tmp_path):
    deliver(root, "a.csv")
    listed = look(root).pending
    (root / "sales").rename(tmp_path / "elsewhere")
    (root / "sales").symlink_to(tmp_path / "elsewhere")
    assert [problem.message for problem in hashed(listed)[1]] == [LINK]


def test_a_file_of_more_bytes_than_are_taken_is_named_and_never_read(root, reads):
    deliver(root, "b.csv")
    known = remembered(look(root).pending)
    reads.clear()
    for name in ("a.csv", "b.csv"):
        os.truncate(deliver(root, name), 4 << 20)
        os.utime(root / "sales" / DAY / name, (1, 1))
    bounded = list_landing(
        FolderArea(root), LandingFiles("sales"), known, until=UNTIL, settle_s=2, limits=Limits(file_mib=3)
    )
    reason = "has 4,194,304 bytes, more than 3,145,728; deliver it in parts, or set PLATFORM_FILE_MIB higher"
    assert said(bounded) == dict.fromkeys([f"sales/{DAY}/a.csv", f"sales/{DAY}/b.csv"], reason)
    assert (bounded.pending, bounded.delivered, reads) == ((), frozenset(), [])
    assert [file.path for file in look(root, known).pending] == [f"sales/{DAY}/a.csv"]


@pytest.mark.parametrize("name", [".a.csv", "_a.csv", ".a.csv.crc", "_SUCCESS"])
def test_names_that_belong_to_their_writer_are_passed_over(root, name):
    deliver(root, name)
    assert look(root) == Listing((), (), (), frozenset())


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "a.parquet.gz", "a.csv.gz.gz", "a.CSV.bak"])
def test_an_unknown_ending_is_named_and_not_taken(root, name):
    deliver(root, name)
    listing = look(root)
    assert not listing.pending
    assert "has the unknown ending" in said(listing)[f"sales/{DAY}/{name}"]


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.CSV", "csv"), ("a.ndjson", "json"), ("a.json", "json"), ("a.jsonl", "json"), ("a.b.PARQUET", "parquet")],
)
def test_the_ending_says_the_format_whatever_its_case(root, name, format_):
    deliver(root, name)
    assert [file.format for file in look(root).pending] == [format_]


def test_a_link_out_of_the_landing_root_is_not_followed(root, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    deliver(root, "a.csv")
    (root / "sales" / DAY / "link.csv").symlink_to(secret)
    (root / "sales" / "2017-01-03").symlink_to(tmp_path)
    (root / "sales" / DAY / "gone.csv").symlink_to(tmp_path / "nothing.csv")
    listing = look(root)
    assert [file.path for file in listing.pending] == [f"sales/{DAY}/a.csv"]
    assert said(listing) == {
        f"sales/{DAY}/link.csv": "is a symbolic link; only files inside the landing root are taken",
        f"sales/{DAY}/gone.csv": "is a symbolic link; only files inside the landing root are taken",
        "sales/2017-01-03": "is a link or a file where a folder should be",
    }


def test_a_source_whose_folder_leads_out_of_the_landing_root_is_not_taken(root, tmp_path):
    deliver(tmp_path / "elsewhere", "a.csv")
    root.mkdir()
    (root / "sales").symlink_to(tmp_path / "elsewhere" / "sales")
    listing = look(root)
    assert not listing.pending
    assert "only files inside the landing root are taken" in said(listing)[f"sales/{DAY}/a.csv"]


@pytest.mark.parametrize("name", ["january", "2017-13-01", "20170102", "2017-W01-1", "2017-1-2", "2017-01-02T00"])
def test_a_folder_that_is_no_date_is_named_and_nothing_else_suffers(root, name):
    deliver(root, "a.csv", day=name)
    deliver(root, "b.csv")
    listing = look(root)
    assert [file.path for file in listing.pending] == [f"sales/{DAY}/b.csv"]
    assert said(listing)[f"sales/{name}"].startswith("is not a folder named after an arrival date")


def test_a_file_where_a_date_folder_should_be_and_a_folder_where_a_file_should_be_are_named(root):
    deliver(root, "b.csv")
    (root / "sales" / "2017-01-03").write_text("")
    (root / "sales" / DAY / "folder.csv").mkdir()
    os.mkfifo(root / "sales" / DAY / "pipe.csv")
    listing = look(root)
    assert len(listing.pending) == 1
    assert said(listing) == {
        "sales/2017-01-03": "is a link or a file where a folder should be",
        f"sales/{DAY}/folder.csv": "is not a file",
        f"sales/{DAY}/pipe.csv": "is not a file",
    }


def test_a_source_folder_that_cannot_be_listed_is_a_problem_and_no_end(root):
    root.mkdir()
    (root / "sales").write_text("")
    listing = look(root)
    assert not listing.pending
    assert said(listing)["sales"].startswith("cannot be listed: Not a directory")


def test_a_source_that_never_delivered_has_nothing_pending(root):
    assert look(root) == Listing((), (), (), frozenset())


def test_files_newer_than_the_clock_are_left_where_they_are(root):
    deliver(root, "a.csv", day="2017-01-05")
    deliver(root, "a.csv", day="2017-01-06")
    listing = look(root)
    assert [file.arrival_date for file in listing.pending] == [date(2017, 1, 5)]
    assert listing.delivered == frozenset({date(2017, 1, 5)})


def test_a_date_counts_as_delivered_only_once_nothing_of_it_is_to_come(root):
    deliver(root, "whole.csv", day="2017-01-01")
    deliver(root, "whole.csv", day="2017-01-02")
    deliver(root, "growing.csv", day="2017-01-02", age_s=0)
    deliver(root, "whole.csv", day="2017-01-03")
    deliver(root, "unknown.txt", day="2017-01-03")
    (root / "sales" / "2017-01-04").mkdir()
    deliver(root, "_writing.csv", day="2017-01-05")
    assert look(root, settle_s=30).delivered == frozenset({date(2017, 1, 1)})


ODD = [
    "a b",
    "a+b",
    "a%20b",
    "[1]",
    "{x,y}",
    "a*",
    "a?",
    "a:b",
    "ünï☃",
    "a#b",
    "a&b=c",
    "a\nb",
    "a\\b",
    "'\"",
    "~;$(x)",
]


def test_names_may_hold_any_character(root):
    for name in ODD:
        deliver(root, f"{name}.csv")
    assert {file.path for file in look(root).pending} == {f"sales/{DAY}/{name}.csv" for name in ODD}


@pytest.mark.parametrize("marker", ["_SUCCESS", "complete", "all.ok"])
def test_nothing_of_an_arrival_date_is_taken_before_its_marker_lies_there(root, marker):
    deliver(root, "a.csv")
    deliver(root, "b.csv")
    listing = look(root, complete=marker)
    assert not listing.pending
    assert said(listing) == {f"sales/{DAY}": f"is still being delivered: {marker} is not there yet"}
    assert (len(listing.growing), listing.delivered) == (1, frozenset())
    deliver(root, marker, b"")
    listing = look(root, complete=marker)
    assert [file.path[-5:] for file in listing.pending] == ["a.csv", "b.csv"]
    assert (said(listing), listing.delivered) == ({}, frozenset({date(2017, 1, 2)}))
    deliver(root, "c.csv", age_s=0)
    assert [*said(look(root, complete=marker))] == [f"sales/{DAY}/c.csv"], "a file that comes after it has to rest, too"


def test_a_marker_with_nothing_beside_it_says_that_nothing_came(root):
    deliver(root, "_SUCCESS", b"")
    assert look(root, complete="_SUCCESS") == Listing((), (), (), frozenset({date(2017, 1, 2)}))
    assert look(root) == Listing((), (), (), frozenset())


def test_a_file_with_a_marker_of_its_own_is_taken_once_that_lies_beside_it(root):
    for name in ("a.csv", "a.csv.done", "b.csv"):
        deliver(root, name)
    listing = look(root, complete=".done")
    assert [file.path for file in listing.pending] == [f"sales/{DAY}/a.csv"]
    assert said(listing) == {f"sales/{DAY}/b.csv": "is still being delivered: b.csv.done is not there yet"}
    assert listing.delivered == frozenset()
    known = remembered(listing.pending)
    (root / "sales" / DAY / "a.csv.done").unlink()
    assert not look(root, known, complete=".done").pending, "a marker that is gone changes nothing of what was taken"
    deliver(root, "b.csv.done", b"")
    assert look(root, known, complete=".done").delivered == frozenset({date(2017, 1, 2)})
