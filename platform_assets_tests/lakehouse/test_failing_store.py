"""What a publisher and a reader make of an object store that fails: after it has done what it was asked, or before.

The store is s3proxy, with something between that answers errors, refuses, or cuts the connection at one request.
"""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

import pytest

from platform_assets.lakehouse.errors import InterruptedPublicationError, LakeError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.lakehouse.storage.answers import failure
from platform_assets.lakehouse.storage.parquet import damage, opened, row_batches
from platform_assets.lakehouse.store_trial import tried
from platform_assets_tests.support.faulty_store import Fault, Faults, faults
from platform_assets_tests.support.shelf import SALES, STORES, day, everything, staged_manifest

__all__ = ["faults"]

pytestmark = pytest.mark.proof

OLD, NEW = ({table: {day(0): [("a", n)]} for table in (SALES, STORES)} for n in (0, 1))


@pytest.fixture
def lake(faults: Faults, tmp_path: Path) -> Lake:
    """With a release."""
    lake = Lake.at(f"s3://lakes/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))
    publish(lake, staged_manifest(lake, OLD))
    return lake


@pytest.mark.parametrize("fault", ["error after", "cut after", "cut", "error"])
@pytest.mark.parametrize(
    "at", ["/manifest.json", "/sales/_delta_log/", "/stores/_delta_log/", "/_releases/_delta_log/"]
)
def test_a_write_of_which_the_store_did_not_get_to_say_that_it_was_done_was_done(
    lake: Lake, faults: Faults, at: str, fault: Fault
) -> None:
    """It is asked again then, and denies it: there is one already."""
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", at)
    assert publish(lake, what) == 1
    assert everything(lake) == NEW
    assert len([method for method, path in faults.asked if method == "PUT" and what.publication in path]) >= 1
    assert dict(published(lake))[1] == what.publication
    assert recover(lake) == []


@pytest.mark.parametrize("fault", ["cut after", "error after"])
def test_a_commit_that_is_there_though_the_store_never_says_so_counts(lake: Lake, faults: Faults, fault: Fault) -> None:
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", "/_delta_log/", times=1000)
    assert publish(lake, what) == 1
    assert everything(lake) == NEW


@pytest.mark.parametrize(
    ("fault", "said", "todo"),
    [
        ("denied", "may not be read or written: the store says AccessDenied", "AWS_ACCESS_KEY_ID"),
        ("error", "does not answer for", "AWS_ENDPOINT_URL"),
        ("cut", "does not answer for", "AWS_ENDPOINT_URL"),
    ],
)
def test_a_commit_that_the_store_refuses_is_told_as_that_and_nothing_is_published(
    lake: Lake, faults: Faults, fault: Fault, said: str, todo: str
) -> None:
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", "/sales/_delta_log/", times=1000)
    with pytest.raises(LakeError, match=said) as caught:
        publish(lake, what)
    assert todo in caught.value.todo
    assert "\x1b" not in caught.value.what
    assert "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}" not in caught.value.what
    assert current_release(lake).number == 0
    faults.rule = lambda method, path: None
    assert publish(lake, what) == 1


def test_a_release_that_the_store_refuses_is_finished_by_the_next(lake: Lake, faults: Faults) -> None:
    what = staged_manifest(lake, NEW)
    faults.at("denied", "PUT", "/_releases/_delta_log/", times=1000)
    with pytest.raises(InterruptedPublicationError, match=r"the store says AccessDenied") as caught:
        publish(lake, what)
    assert "What to do" not in caught.value.what, "one remedy is enough"
    assert everything(lake) == OLD
    faults.rule = lambda method, path: None
    assert recover(lake) == [f"Finished publication {what.publication} as release 1."]
    assert everything(lake) == NEW


@pytest.mark.parametrize("fault", ["denied", "error"])
def test_a_file_of_which_the_store_does_not_say_whether_it_is_there_is_not_called_missing(
    lake: Lake, faults: Faults, fault: Fault
) -> None:
    """Or a search for a person's rows would pass over it."""
    (file,) = (path for path in lake.root.files() if "/stores/" in path and path.endswith(".parquet"))
    faults.rule = lambda method, path: fault if method == "HEAD" and "/part-" in path else None
    with pytest.raises(LakeError, match=r"may not be read or written|does not answer"):
        opened(lake.root / file)
    faults.rule = lambda method, path: None
    opened(lake.root / file).close()
    with pytest.raises(FileNotFoundError):
        opened(lake.root / f"{file}-other")


@pytest.mark.parametrize("fault", ["denied", "error"])
def test_a_file_that_the_store_does_not_give_is_not_called_damaged(lake: Lake, faults: Faults, fault: Fault) -> None:
    what = staged_manifest(lake, NEW)
    publish(lake, what)
    (file,) = what.tables[0].days[day(0)].files
    place = lake.table_path(what.tables[0].table) / file.path
    assert damage(place, file.size) == ""
    faults.rule = lambda method, path: fault if method == "GET" and "/part-" in path else None
    for read in (
        lambda: damage(place, file.size),
        lambda: list(row_batches(place, 10)),
        lambda: read_arrow(lake, what.tables[0].table),
    ):
        with pytest.raises(LakeError, match=r"may not be read or written|does not answer") as caught:
            read()
        assert "damage" not in str(caught.value)


def test_what_is_listed_and_then_denied_is_not_removed_for_ever(lake: Lake, faults: Faults) -> None:
    folder = lake.root / "_stages/one"
    (folder / "file").replace(b"1")
    faults.rule = lambda method, path: "no such key" if method == "POST" else None
    began = time.monotonic()
    with pytest.raises(LakeError, match=r"lists .*/_stages/one/file below .* and says that it is not there"):
        folder.remove()
    assert time.monotonic() - began < 20
    faults.at("no such key", "POST", "?delete", times=2)
    folder.remove()
    assert not folder.exists()


def test_a_file_that_is_replaced_under_a_lock_was_replaced_though_the_store_did_not_get_to_say_so(
    lake: Lake, faults: Faults
) -> None:
    for content in (b"first", b"second"):
        faults.at("error after", "PUT", "/_horizon.json")
        assert lake.horizon_file.replace_if_held(content, lambda: None, lake.deletions_path / "x.draft")
        assert lake.horizon_file.read() == content


def test_a_store_that_stumbles_once_is_not_called_one_without_conditional_writes(lake: Lake, faults: Faults) -> None:
    faults.at("error after", "PUT", "/_trial/")
    assert tried(lake).startswith("conditional writes")


def test_a_bucket_that_is_not_there_is_no_lake_in_which_nothing_was_published(faults: Faults) -> None:
    with pytest.raises(LakeError, match="There is no bucket s3://no-such in this object store"):
        current_release(Lake.at("s3://no-such/lake"))


@pytest.mark.parametrize(
    ("code", "todo"),
    [
        ("ExpiredToken", "Set the credentials"),
        ("InvalidToken", "Set the credentials"),
        ("RequestTimeTooSkewed", "Set the clock"),
        ("SlowDown", "run the same again"),
    ],
)
def test_what_the_store_says_of_credentials_and_clocks_is_told_with_what_to_do(code: str, todo: str) -> None:
    error = failure(OSError(f"Error performing PUT http://a/b - 400 Bad Request: <Code>{code}</Code>"), "s3://a/b")
    assert code in error.what
    assert todo in error.todo
