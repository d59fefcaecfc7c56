"""Deliveries in a bucket: each is taken once, whatever it is called, and what cannot be listed is told."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import obstore
import pytest
from obstore.store import from_url

from platform_assets.contracts import LandingFiles
from platform_assets.contracts.landing import COMPRESSIONS, FORMATS
from platform_assets.lakehouse.layout import stored
from platform_assets.lakehouse.storage import object_store
from platform_assets.settings import load_settings
from platform_assets.sources.landing import Hashes, Known, LandedFile, Listing, at_hand, changed_since, hashed
from platform_assets.sources.listing import BucketArea, landing_area, list_landing
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.object_store import BUCKET, Azurite, ObjectStore

DAY = "2017-01-02"


CONTENT = b"a\n1\n"


class Shelf:
    """A landing area of its own in the bucket of all tests."""

    def __init__(self, store: ObjectStore | Azurite) -> None:
        self._name = uuid4().hex
        self._client = from_url(store.url)
        self.url = f"{store.url}/{self._name}"

    def deliver(self, name: str, content: bytes = CONTENT, *, day: str = DAY, source: str = "sales") -> str:
        path = f"{source}/{day}/{name}"
        obstore.put(self._client, f"{self._name}/{path}", content)
        return path

    def remove(self, path: str) -> None:
        obstore.delete(self._client, f"{self._name}/{path}")

    def look(
        self,
        known: dict[str, Known] | None = None,
        *,
        complete: str | None = None,
        settle_s: float = 0,
        among: Collection[str] | None = None,
    ) -> Listing:
        return list_landing(
            BucketArea(stored(self.url)),
            LandingFiles("sales", complete),
            known or {},
            until=date(2017, 1, 5),
            settle_s=settle_s,
            hashes=Hashes(),
            among=among,
        )


@pytest.fixture(params=["object_store", pytest.param("azurite", marks=pytest.mark.proof)])
def store(request: pytest.FixtureRequest) -> ObjectStore | Azurite:
    """Of each kind one."""
    found: ObjectStore | Azurite = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def shelf(store: ObjectStore | Azurite) -> Shelf:
    return Shelf(store)


def said(listing: Listing) -> dict[str, str]:
    return {problem.path: problem.message for problem in (*listing.problems, *listing.growing)}


def remembered(files: Iterable[LandedFile], *, refused: bool = False) -> dict[str, Known]:
    taken, problems = hashed(files)
    assert not problems
    return {file.path: Known(file.size, file.modified_ns, file.sha256, refused) for file in taken}


def test_an_object_is_pending_until_it_was_taken_and_then_never_again(shelf: Shelf) -> None:
    path = shelf.deliver("a.csv")
    [file] = shelf.look().pending
    assert (file.path, file.arrival_date, file.format, file.size) == (path, date(2017, 1, 2), "csv", len(CONTENT))
    assert shelf.look(remembered([file])) == Listing((), (), (), frozenset({date(2017, 1, 2)}))


def test_what_is_fetched_is_what_was_listed_and_is_gone_afterwards(shelf: Shelf, tmp_path: Path) -> None:
    shelf.deliver("a.csv", b"first")
    shelf.deliver("b.csv", b"second" * 5_000_000)
    with at_hand(shelf.look().pending, tmp_path / "fetched") as (files, problems):
        assert not problems
        for file, content in zip(files, (b"first", b"second" * 5_000_000), strict=True):
            assert file.sha256 == hashlib.sha256(content).hexdigest()
            assert file.file == tmp_path / "fetched" / file.path
            with file.open() as stream:
                assert stream.read() == content
        assert not changed_since(files)
        shelf.deliver("a.csv", b"other")
        assert not changed_since(files), "it was a version of the object, whatever lies there since"
    assert not (tmp_path / "fetched").exists()


def test_an_object_that_is_another_or_gone_since_it_was_listed_keeps_no_other_back(
    shelf: Shelf, tmp_path: Path
) -> None:
    replaced, gone, stays = (shelf.deliver(name) for name in ("a.csv", "b.csv", "c.csv"))
    listed = shelf.look().pending
    shelf.deliver("a.csv", b"a\n2\n")
    shelf.remove(gone)
    with at_hand(listed, tmp_path / "fetched") as (files, problems):
        assert [file.path for file in files] == [stays]
        assert {problem.path: (problem.what, problem.is_growing) for problem in problems} == {
            replaced: ("is still growing, changed while it was read", True),
            gone: ("cannot be read: No such object", False),
        }


def test_what_a_killed_process_has_fetched_is_removed(shelf: Shelf, tmp_path: Path) -> None:
    shelf.deliver("a.csv")
    (tmp_path / "fetched" / "sales" / DAY).mkdir(parents=True)
    (tmp_path / "fetched" / "sales" / DAY / "a.csv").write_text("half")
    with at_hand(shelf.look().pending, tmp_path / "fetched") as (files, problems):
        assert (len(files), problems) == (1, [])


def test_a_taken_object_that_was_written_anew_is_told(shelf: Shelf) -> None:
    path = shelf.deliver("a.csv")
    known = remembered(shelf.look().pending)
    shelf.deliver("a.csv", b"a\n1\n2\n")
    [problem] = shelf.look(known).problems
    assert (problem.path, problem.is_replaced) == (path, True)
    assert problem.what.startswith(f"was replaced: {len(CONTENT)} bytes with sha256 ")
    assert shelf.look(remembered(shelf.look().pending)).problems == ()


def test_the_same_content_written_anew_is_no_other_object(shelf: Shelf) -> None:
    path = shelf.deliver("a.csv")
    known = remembered(shelf.look().pending)
    touched = {path: Known(known[path].size, known[path].modified_ns - 10**9, known[path].sha256, refused=False)}
    assert shelf.look(touched).problems == ()
    assert shelf.look(touched).pending == ()


def test_an_object_that_was_written_a_moment_ago_waits(shelf: Shelf) -> None:
    path = shelf.deliver("a.csv")
    listing = shelf.look(settle_s=3600)
    assert (listing.pending, listing.delivered) == ((), frozenset())
    assert "is still growing" in said(listing)[path]


def test_what_lies_in_the_way_is_told_and_keeps_nothing_back(shelf: Shelf) -> None:
    taken = shelf.deliver("a.csv")
    shelf.deliver("b.csv", day=f"{DAY}/deeper")
    shelf.deliver("c.docx")
    shelf.deliver("d.csv", day="yesterday")
    shelf.deliver("_hidden.csv")
    shelf.deliver("e.csv", day="2017-01-06")
    listing = shelf.look()
    assert [file.path for file in listing.pending] == [taken]
    known_are = f"known are {', '.join(FORMATS)}, and of text {', '.join(COMPRESSIONS)} after it"
    assert said(listing) == {
        f"sales/{DAY}/deeper": "is not a file",
        f"sales/{DAY}/c.docx": f"has the unknown ending '.docx'; {known_are}",
        "sales/yesterday": "is not a folder named after an arrival date, such as 2017-03-31",
    }
    assert not listing.delivered


@pytest.mark.parametrize("name", ["a#1.csv", "a b.csv", "ä.csv", "a%20b.csv", "a+b.csv", "a=1&b=2.csv", "a'b.csv"])
def test_odd_names_are_names(shelf: Shelf, tmp_path: Path, name: str) -> None:
    path = shelf.deliver(name)
    [file] = shelf.look().pending
    assert file.path == path
    with at_hand([file], tmp_path / "fetched") as (files, problems):
        assert not problems
        assert (files[0].path, files[0].sha256) == (path, hashlib.sha256(CONTENT).hexdigest())
    assert shelf.look(remembered([file])).pending == ()


def test_a_name_that_is_too_long_for_this_machine_is_the_problem_of_that_file(shelf: Shelf, tmp_path: Path) -> None:
    """Nor may s3proxy keep one on its disk, so the machine's own limit is met by the folder that is fetched into."""
    good = shelf.deliver("a.csv")
    shelf.deliver(f"{'b' * 200}.csv")
    listed = shelf.look().pending
    deep = tmp_path
    while len(str(deep / "x" / "sales" / DAY)) < 4096 - 150:
        deep = deep / ("d" * min(200, 4096 - 150 - len(str(deep / "x" / "sales" / DAY))))
    with at_hand(listed, deep / "x") as (files, problems):
        assert [file.path for file in files] == [good]
        assert [problem.what for problem in problems] == ["cannot be read: File name too long"]


def test_only_what_is_asked_for_is_looked_at(shelf: Shelf) -> None:
    path = shelf.deliver("a.csv")
    shelf.deliver("b.csv")
    shelf.deliver("c.csv", day="2017-01-03")
    listing = shelf.look(among={path, "sales/2017-01-04/gone.csv", "other/2017-01-01/x.csv"})
    assert [file.path for file in listing.pending] == [path]
    assert (listing.problems, listing.delivered) == ((), frozenset())


def test_what_went_is_told_from_what_is_out_of_sight(shelf: Shelf, store: ObjectStore | Azurite) -> None:
    path = shelf.deliver("a.csv")
    area = BucketArea(stored(shelf.url))
    assert area.is_there()
    assert not area.has_gone(path)
    assert area.has_gone(f"sales/{DAY}/b.csv")
    elsewhere = BucketArea(stored(f"{store.url.replace('lakes', 'not-there')}/landing"))
    assert not elsewhere.is_there()
    assert not elsewhere.has_gone(path)


def test_folders_that_nobody_reads_are_found(shelf: Shelf) -> None:
    shelf.deliver("a.csv")
    shelf.deliver("a.csv", source="salse")
    shelf.deliver("a.csv", source="shop/tills")
    area = BucketArea(stored(shelf.url))
    assert area.folders(".") == ["sales", "salse", "shop"]
    assert area.folders("shop") == ["tills"]


def test_a_bucket_that_is_not_there_is_the_problem_of_the_landing_root(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    settings = load_settings(state=tmp_path / "state", landing="s3://no-such-bucket/deliveries")
    area = landing_area(settings)
    problem = area.problem()
    assert problem is not None
    assert problem.path == "s3://no-such-bucket/deliveries"
    assert "There is no bucket s3://no-such-bucket" in problem.what
    assert "PLATFORM_LANDING" in problem.todo
    listing = list_landing(area, LandingFiles("sales"), {}, until=date(2017, 1, 5), settle_s=0)
    assert listing == Listing((), (), (), frozenset()), "it is told once"
    assert BUCKET not in problem.what


GOOD = ("sales/2017-01-02/a.csv", "sales/2017-01-03/b.csv")


_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2017-01-02T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
    "<Size>4</Size></Contents>"
)


_PREFIX = "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>"


_ANSWER = "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>{}</ListBucketResult>"


def listing(keys: list[str], prefix: str, delimiter: str) -> str:
    """As S3 lists: what goes on after the delimiter once, by its beginning."""
    found = {}
    for key in sorted(key for key in keys if key.startswith(prefix)):
        name, slash, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
        found[f"{prefix}{name}{slash}" if slash else key] = _PREFIX if slash else _OBJECT
    return _ANSWER.format("".join(form.format(name) for name, form in found.items()))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is in the bucket."""
    names = [*GOOD]

    class Lists(Quiet):
        def respond(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            self.answer(200, listing(names, asked.get("prefix", [""])[0], asked.get("delimiter", [""])[0]).encode())

    with serving(Lists) as port:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "a-key",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        object_store._client_of.cache_clear()
        yield names
        object_store._client_of.cache_clear()


def look() -> Listing:
    return list_landing(
        BucketArea(stored("s3://deliveries")),
        LandingFiles("sales", None),
        {},
        until=date(2017, 1, 5),
        settle_s=0,
        hashes=Hashes(),
        among=None,
    )


@pytest.mark.parametrize("name", ["sales/2017-01-03//c.csv", "sales/2017-01-03/../c.csv", "sales/2017-01-03/./c.csv"])
def test_a_name_that_cannot_be_listed_is_told_and_only_its_date_waits(keys: list[str], name: str) -> None:
    assert [file.path for file in look().pending] == [*GOOD]
    keys.append(name)
    found = look()
    assert [file.path for file in found.pending] == [GOOD[0]]
    (problem,) = found.problems
    assert problem.path == "sales/2017-01-03"
    assert f"an object is called {name}" in problem.message
    assert "Rename or remove it" in problem.message


def test_a_name_that_keeps_the_whole_source_from_being_listed_is_told(keys: list[str]) -> None:
    keys.append("sales//c.csv")
    found = look()
    assert found.pending == ()
    assert ["an object is called sales//c.csv" in problem.message for problem in found.problems] == [True]
