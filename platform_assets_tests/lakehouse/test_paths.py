"""Names and addresses become places only after they were checked, and odd characters survive the log's encoding."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.statistics import staged_files
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.storage.object_store import require_endpoint
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    change,
    content,
    contents,
    day,
    live,
    manifest,
    stage,
)


@pytest.fixture
def lake(disk_lake: Lake) -> Lake:
    """What is looked at here lies on a disk."""
    return disk_lake


@pytest.mark.parametrize(
    "name",
    [
        "sales",
        "silver",
        "silver.",
        "bronze.sales",
        "silver.Sales",
        "silver.a/b",
        "silver...",
        "../x.y",
        "silver.a.b",
        "",
    ],
)
def test_a_name_that_is_no_table_never_becomes_a_path(lake: Lake, name: str) -> None:
    with pytest.raises(LakeError, match="is not the name of a table"):
        lake.table_path(name)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a", "a b", "event_date=2017-01-01", "_delta_log", "a\n"])
def test_a_name_that_is_no_publication_never_becomes_a_path(lake: Lake, name: str) -> None:
    with pytest.raises(LakeError, match="is not the name of a publication"):
        lake.publication_path(name)


@pytest.mark.parametrize("folder", ["a%20b", "a\\b", "[a]"])
def test_a_lake_where_delta_would_look_elsewhere_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(LakeError, match=r"reads .* in a path as an escape"):
        Lake.at(tmp_path / folder)


@pytest.mark.parametrize("folder", ["with space", "Ümläut", "a#b", "a?b", "a+b", "a'b", 'a"b', "a=b", "a:b", "日本"])
def test_a_lake_may_lie_in_an_oddly_named_folder(tmp_path: Path, folder: str) -> None:
    lake = Lake.at(tmp_path / folder)
    for cents in (1, 2):
        publication = stage(lake, SALES, {day(0): [("a", cents)]})
        publish(lake, manifest(publication, change(lake, SALES, publication)))
    assert contents(lake, SALES) == {day(0): [("a", 2)]}


@pytest.mark.parametrize("name", ["part a.parquet", "part-ä%20#?+&.parquet", "part-100%.parquet", "part='x'.parquet"])
def test_odd_names_of_files_are_encoded_once_in_the_log_and_never_in_manifests(lake: Lake, name: str) -> None:
    publication = stage(lake, SALES, {day(0): [("a", 1)]})
    (file,) = staged_files(lake, SALES, publication)[1][day(0)]
    folder = (lake.table_path(SALES) / file.path).parent
    on_disk(lake.table_path(SALES) / file.path).rename(on_disk(folder / name))
    log = commits.commit_file(lake.stage_path(SALES, publication), 0)
    old = file.path.rsplit("/", 1)[1]
    on_disk(log).write_text(on_disk(log).read_text().replace(old, quote(name)))
    (file,) = staged_files(lake, SALES, publication)[1][day(0)]
    assert file.path == f"{publication}/event_date=2017-01-01/{name}"
    publish(lake, manifest(publication, change(lake, SALES, publication)))
    assert contents(lake, SALES) == {day(0): [("a", 1)]}
    assert live(lake, SALES) == {day(0): (file,)}
    empty = change(lake, SALES, publication).model_copy(update={"days": {day(0): content((), (file,))}})
    publish(lake, manifest(f"{publication}-2", empty))
    assert contents(lake, SALES) == {}


BUCKET = "s3://our-bucket"


ALLOWED = {"AWS_ALLOW_HTTP": "true"}


@pytest.mark.parametrize("address", ["127.0.0.1:9000", "localhost:9000", "http:/host", "s3.example.com", "http://h:x"])
def test_an_address_without_a_protocol_is_refused_with_the_variable(address: str) -> None:
    with pytest.raises(LakeError, match=r"AWS_ENDPOINT_URL is .*\n.*http://127\.0\.0\.1:9000"):
        require_endpoint(BUCKET, ALLOWED | {"AWS_ENDPOINT_URL": address})


@pytest.mark.parametrize("said", [{}, {"AWS_ALLOW_HTTP": "false"}, {"AWS_ALLOW_HTTP": ""}])
def test_an_address_without_encryption_has_to_be_allowed(said: dict[str, str]) -> None:
    with pytest.raises(LakeError, match=r"not encrypted[^\n]*\n.*AWS_ALLOW_HTTP=true"):
        require_endpoint(BUCKET, said | {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"})


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"AWS_ENDPOINT_URL": ""},
        {"AWS_ENDPOINT_URL": "https://store.example.com"},
        ALLOWED | {"AWS_ENDPOINT_URL": "http://[::1]:9000"},
        {"AWS_ENDPOINT_URL": "HTTP://store", "AWS_ALLOW_HTTP": "1"},
    ],
)
def test_what_can_be_asked_is_left_alone(said: dict[str, str]) -> None:
    require_endpoint(BUCKET, said)


def test_of_another_kind_of_store_nothing_is_asked() -> None:
    require_endpoint("abfss://c@a.dfs.core.windows.net", {"AWS_ENDPOINT_URL": "nonsense"})
