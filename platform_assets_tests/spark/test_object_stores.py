"""What Spark is told of an object store, here and by whoever runs a server of their own."""

from __future__ import annotations

import re

import pytest

from platform_assets.settings import project_root
from platform_assets.spark.session.configuration import of_s3, of_store
from platform_assets.spark.session.jvm import SessionError

_IN_AZURE = "abfss://lakes@account.dfs.core.windows.net/lake"


def test_the_page_about_deployment_has_every_setting_of_a_server() -> None:
    page = (project_root() / "docs" / "deployment.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- settings of a server -->\n```properties\n(.*?)```", page, re.DOTALL)
    assert block, "the block is there"
    assert dict(line.split() for line in block[1].splitlines()) == of_s3({})


def test_no_setting_holds_what_is_shown_to_azure() -> None:
    conf = of_store(_IN_AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "planted-s3cr3t"})
    assert "planted-s3cr3t" not in str(conf)
    assert "${env.AZURE_STORAGE_ACCOUNT_KEY}" in conf.values(), "Hadoop looks there"
    assert not [each for each in conf if "endpoint" in each or "https" in each], "Azure is where its name says"


def test_spark_without_a_key_to_show_to_azure_is_refused_before_it_starts() -> None:
    with pytest.raises(SessionError, match="nothing to show to Azure") as caught:
        of_store(_IN_AZURE, {"AZURE_STORAGE_SAS_TOKEN": "planted-s3cr3t"})
    assert "AZURE_STORAGE_ACCOUNT_KEY" in caught.value.todo
    assert "planted" not in str(caught.value)


def test_an_emulator_of_azure_is_found_as_deltalake_finds_it() -> None:
    given = {"AZURE_STORAGE_ACCOUNT_KEY": "a-key", "AZURE_STORAGE_USE_EMULATOR": "true"}
    assert of_store(_IN_AZURE, given)["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    elsewhere = of_store(_IN_AZURE, given | {"AZURITE_BLOB_STORAGE_URL": "https://10.0.0.5:443"})
    assert elsewhere["spark.hadoop.fs.azure.abfs.endpoint"] == "10.0.0.5:443"
    assert elsewhere["spark.hadoop.fs.azure.always.use.https"] == "true"


def test_a_lake_in_a_folder_needs_no_setting_of_a_store() -> None:
    assert of_store("/srv/lake", {}) == {}
