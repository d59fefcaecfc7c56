"""The project's own files: Dagster's instance loads, pins name no addresses, a skipped test is a failure in CI."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import dagster as dg
import pytest

from platform_assets.cli.commands.up import PATIENT
from platform_assets.settings import project_root

ROOT = project_root()
TESTS = ROOT / "platform_assets_tests"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
UNCLEAR = (
    "another one", "anew", "as it is", "as it was", "beside", "is none", "lie", "lies", "likewise", "nobody",
    "of which", "somebody", "that of", "those of", "told", "whoever",
)  # fmt: skip
"""Words that the docs do without: a plainer one names who acts and what happens."""


def test_dagsters_instance_loads_and_keeps_everything_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.from_config(str(ROOT)) as instance:
        assert (instance.telemetry_enabled, instance.nux_enabled, instance.freshness_enabled) == (False, False, True)
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure, "a failed gate would be tried again"
        assert instance.run_monitoring_enabled
        assert instance.get_concurrency_config().run_queue_config is not None
        assert instance.get_runs() == []
    assert [path.name for path in tmp_path.iterdir()] == [".platform"]


def test_a_run_may_take_as_long_to_be_dispatched_as_to_start() -> None:
    """Else it is given up under load: Dagster reads the variable that `up` sets as it is imported."""
    waits = "from dagster._grpc.client import DEFAULT_GRPC_TIMEOUT as seconds; print(seconds)"
    environment = os.environ | PATIENT
    told = subprocess.run([sys.executable, "-c", waits], env=environment, check=True, capture_output=True, text=True)
    assert f"start_timeout_seconds: {int(told.stdout)}\n" in (ROOT / "dagster.yaml").read_text()


def test_the_workspace_names_a_module_that_has_definitions() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    assert f"module_name: {declared['code_location_target_module']}\n" in (ROOT / "workspace.yaml").read_text()


def test_every_declared_dependency_is_pinned_without_an_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pins = project["tool"]["uv"]["constraint-dependencies"]
    pinned = {pin.split("==")[0] for pin in pins}
    for declared in (*project["project"]["dependencies"], *project["dependency-groups"]["dev"]):
        name = declared.split("[")[0].split("=")[0].split(">")[0].split("<")[0].strip()
        assert name in pinned
    assert "://" not in "".join(pins) + (ROOT / "requirements.txt").read_text()


@pytest.mark.proof
def test_a_skip_is_a_failure_in_ci(tmp_path: Path) -> None:
    package = tmp_path / "platform_assets_tests"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copy(ROOT / "platform_assets_tests" / "conftest.py", package)
    shutil.copytree(ROOT / "platform_assets_tests" / "support", package / "support")
    (package / "test_skips.py").write_text(
        "import pytest\n"
        "def test_a(): pytest.skip('no database')\n"
        "@pytest.fixture\n"
        "def absent(): pytest.skip('no broker')\n"
        "def test_b(absent): pass\n"
        "@pytest.mark.proof\n"
        "def test_c(): assert False\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", package],
        cwd=tmp_path, env={**os.environ, "CI": "true", "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "1 failed, 1 deselected, 1 error" in done.stdout, done.stdout + done.stderr
    assert "skipped although CI=true: Skipped: no database" in done.stdout


def test_every_module_with_proofs_says_what_they_show() -> None:
    done = subprocess.run([sys.executable, ROOT / ".ci" / "proofs"], capture_output=True, text=True, check=True)
    modules, shown = done.stdout.splitlines()[::2], done.stdout.splitlines()[1::2]
    assert len(modules) > 100
    assert [name for name, words in zip(modules, shown, strict=True) if not words.strip()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_docs_use_plain_words(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for elsewhere in (r"^ *```.*?^ *```", r"<!-- rooms: .*?<!-- end -->", r"`[^`]*`", r"\]\([^)]*\)"):
        text = re.sub(elsewhere, lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    unclear = re.compile(rf"\b({'|'.join(UNCLEAR)})\b", re.IGNORECASE)
    lines = enumerate(text.splitlines(), 1)
    assert [f"{page.name}:{number}: {found[0]}" for number, line in lines for found in unclear.finditer(line)] == []


@pytest.mark.parametrize("room", sorted(path for path in (ROOT / "platform_assets").iterdir() if path.is_dir()))
def test_the_product_names_who_acts(room: Path) -> None:
    """In docstrings, comments and messages."""
    unclear = re.compile(r"\b(nobody|somebody|told|whoever)\b(?!\.json)", re.IGNORECASE)
    texts = (tokenize.STRING, tokenize.COMMENT)
    found = [
        f"{path.relative_to(ROOT)}:{token.start[0]}"
        for path in sorted(room.rglob("*.py"))
        for token in tokenize.generate_tokens(path.open(encoding="utf-8").readline)
        if token.type in texts and unclear.search(token.string)
    ]
    assert found == []


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md"])
def test_whatever_the_pages_for_engineers_point_at_is_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_.]+/[a-z_/]+(?:\.\w+)?)`", text)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / "platform_assets" / name).exists() and not (ROOT / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_points_at_is_there(page: Path) -> None:
    named = set(re.findall(r"`([a-z_/]+/test_\w+\.py)`", page.read_text(encoding="utf-8"))) - {"shop/test_shop.py"}
    assert not [name for name in named if not (TESTS / name).exists() and not (ROOT / name).exists()]


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = re.findall(r"\]\(([a-z-]+\.md)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")


def test_a_test_that_takes_more_than_five_seconds_says_why(request: pytest.FixtureRequest) -> None:
    took = json.loads((ROOT / "platform_assets_tests" / "durations.json").read_text(encoding="utf-8"))
    silent = {
        item.nodeid.partition("[")[0]
        for item in request.session.items
        if isinstance(item, pytest.Function) and not item.function.__doc__ and not item.get_closest_marker("proof")
        if took.get(item.nodeid, 0) > 5
    }
    assert not silent
