"""What Spark is told of an object store, here and by whoever runs a server of their own."""

from __future__ import annotations

import re

from platform_assets.settings import project_root
from platform_assets.spark.session.object_stores import of_s3


def test_the_page_about_deployment_has_every_setting_of_a_server() -> None:
    page = (project_root() / "docs" / "deployment.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- settings of a server -->\n```properties\n(.*?)```", page, re.DOTALL)
    assert block, "the block is there"
    assert dict(line.split() for line in block[1].splitlines()) == of_s3({})
