"""Imports point down the rooms of the design, so that what is below never learns of what is above."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import platform_assets

PACKAGE = Path(platform_assets.__file__).parent
ROOMS = (
    "definitions",
    "cli",
    "domains",
    "orchestration",
    "backfill",
    "engine",
    "quality",
    "sources",
    "compute",
    "lakehouse",
    "ledger",
    "planning",
    "contracts",
    "settings",
    "errors",
    "failpoints",
)
"""From top to bottom, as in the architecture."""

OFFERED_BY_THE_PACKAGE = ROOMS[ROOMS.index("engine") :]
"""What `platform_assets` itself may call on: it is what scripts and notebooks import, not Dagster or the commands."""

MODULES = sorted(PACKAGE.rglob("*.py"))
PURE = ("planning", "contracts", "errors")
DAGSTERS_EDGE = ("definitions", "cli", "orchestration")
OF_THE_JVM = {"pyspark", "py4j", "delta", "dagster_pyspark"}


def _name(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


def _room(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(module: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, also inside functions and for type checking."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _imports_at_start(module: Path) -> set[str]:
    """Top-level packages a module needs to be imported at all."""
    body = ast.parse(module.read_text(encoding="utf-8")).body
    names = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


def _rooms_used(module: Path) -> Iterator[tuple[int, str]]:
    for line, name in _imports(module):
        package, _, rest = name.partition(".")
        if package == PACKAGE.name and rest:
            yield line, rest.split(".")[0]


def test_every_module_belongs_to_a_room() -> None:
    assert {_room(module) for module in MODULES} - {"__init__"} <= set(ROOMS)


@pytest.mark.parametrize("module", MODULES, ids=_name)
def test_imports_point_down(module: Path) -> None:
    room = _room(module)
    below = OFFERED_BY_THE_PACKAGE if room == "__init__" else ROOMS[ROOMS.index(room) :]
    wrong = [f"{_name(module)}:{line} imports {used}" for line, used in _rooms_used(module) if used not in below]
    assert not wrong, f"{room} may use {', '.join(below)}; {'; '.join(wrong)}"


def test_importing_the_package_imports_no_room() -> None:
    assert _imports_at_start(PACKAGE / "__init__.py") <= {"__future__", "collections", "datetime", "typing"}


@pytest.mark.parametrize("module", [m for m in MODULES if _room(m) in PURE], ids=_name)
def test_pure_rooms_import_no_engine(module: Path) -> None:
    engines = OF_THE_JVM | {"dagster", "deltalake", "duckdb", "pandas", "polars", "pyarrow", "sqlalchemy"}
    assert not {name.split(".")[0] for _, name in _imports(module)} & engines


@pytest.mark.parametrize("module", [m for m in MODULES if _room(m) in {"lakehouse", "ledger"}], ids=_name)
def test_history_is_imported_without_a_jvm(module: Path) -> None:
    assert not _imports_at_start(module) & OF_THE_JVM


@pytest.mark.parametrize("module", [m for m in MODULES if _room(m) not in DAGSTERS_EDGE], ids=_name)
def test_only_its_edge_knows_dagster(module: Path) -> None:
    assert not [name for _, name in _imports(module) if name.split(".")[0].startswith("dagster")]


def test_the_definitions_load_in_a_fresh_interpreter() -> None:
    code = "from platform_assets.definitions import defs; print(len(list(defs.resolve_all_asset_specs())))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_looking_at_the_machine_imports_no_spark() -> None:
    code = "import sys, platform_assets.compute.health; print({'pyspark', 'dagster', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
