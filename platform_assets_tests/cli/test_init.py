"""A domain that `init` writes is right as it is, overwrites nothing, and the guide that begins with it holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.functions import function_mistakes
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.installation import JARS, OWN_PROCESS

DOMAIN = "init_shop"
GUIDE = project_root() / "docs" / "first-table.md"


@pytest.fixture
def written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of a new domain, which Python finds."""
    said = run("init", DOMAIN, "--into", str(tmp_path / "a folder"))
    assert said.code == 0, said.err
    monkeypatch.syspath_prepend(str(tmp_path / "a folder"))
    yield tmp_path / "a folder" / DOMAIN
    for name in [name for name in sys.modules if name.partition(".")[0] == DOMAIN]:
        del sys.modules[name]


def test_a_new_domain_has_raw_silver_and_gold_and_nothing_is_wrong_with_it(written: Path) -> None:
    catalogue = load_catalogue(load_settings(domains=DOMAIN))
    assert {contract.layer for contract in catalogue} == {"raw", "silver", "gold"}
    assert not list(function_mistakes(catalogue))
    texts = [file.read_text(encoding="utf-8") for file in (*written.rglob("*.py"), written / "settings.sh")]
    assert not re.findall(r"(?<!@)\bexample|FOLDER|HOME", "".join(texts))
    assert [path for path in written.parent.iterdir() if path != written] == []


def test_the_shell_takes_the_settings_from_its_file(written: Path) -> None:
    told = subprocess.run(
        ["bash", "-euc", f'. "{written}/settings.sh"; echo "$PYTHONPATH|$PLATFORM_DOMAINS|$PLATFORM_STATE"'],
        env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    home = written.parent
    assert told.strip() == f"{home}|{DOMAIN}|{home}/{DOMAIN}-state"


def test_a_state_folder_and_a_folder_of_plans_that_were_exported_before_stay(written: Path) -> None:
    mine = {"PATH": os.environ["PATH"], "PLATFORM_STATE": "/my state", "PLATFORM_PLANS": "/my/plans"}
    for exported, told in (
        (mine, "/my state|/my/plans"),
        (mine | {"PLATFORM_STATE": ""}, f"{written.parent}/{DOMAIN}-state|/my/plans"),
    ):
        said = subprocess.run(
            ["bash", "-euc", f'. "{written}/settings.sh"; printenv PLATFORM_STATE PLATFORM_PLANS'],
            env=exported, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "|".join(said.stdout.splitlines()) == told
        assert ("PLATFORM_STATE was exported before and stays /my state" in said.stderr) is (exported == mine)


def test_nothing_is_overwritten(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / DOMAIN
    mine.mkdir()
    said = run("init", DOMAIN, "--into", str(tmp_path))
    assert said.code == 2
    assert "is there already" in said.err
    assert not list(mine.iterdir())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("class", "cannot name a domain"),
        ("My-Shop", "cannot name a domain"),
        ("../shop", "cannot name a domain"),
        ("s" * 31, "cannot name a domain"),
        ("json", "in use"),
        ("pytest", "in use"),
        ("retail", "in use"),
    ],
)
def test_a_name_that_cannot_be_a_domains_is_refused(run: Run, tmp_path: Path, name: str, says: str) -> None:
    said = run("init", name, "--into", str(tmp_path / "new"))
    assert said.code == 2
    assert says in said.err
    assert not (tmp_path / "new").exists()


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_the_guide_to_a_first_table_holds(tmp_path: Path) -> None:
    """All of it as a person would type it; Spark is started four times."""
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks].count("text") == 2
    script = "\n".join(block if kind == "sh" else "echo ---- end of block" for kind, block in blocks)
    bin_ = Path(sys.executable).parent
    unset = {name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")}
    environment = unset | {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PLATFORM_JARS": str(JARS),
        "PLATFORM_SPARK_CONF": OWN_PROCESS,
        "COLUMNS": "150",
    }
    done = subprocess.run(
        ["bash", "-eu"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    until = 0
    for shown in (block for kind, block in blocks if kind == "text"):
        end = said.index("---- end of block", until)
        assert {" ".join(line.split()) for line in shown.splitlines()} <= set(said[until:end])
        until = end + 1
    for name, block in re.findall(r"<!-- example: shop/(\S+) -->\n```python\n(.*?)```", text, re.DOTALL):
        assert block in (tmp_path / "shop" / name).read_text(encoding="utf-8")
