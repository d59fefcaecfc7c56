"""Where an object store is, as variables say it: what cannot be asked is told with the variable and how to write it."""

from __future__ import annotations

import pytest

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.storage.object_store import require_endpoint

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
