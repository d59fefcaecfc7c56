"""The rules of imports that the linter of `poe imports` cannot tell."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import platform_assets
from platform_assets.settings import project_root

PACKAGE = Path(platform_assets.__file__).parent


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def imports(module: Path) -> Iterator[str]:
    """Full name of everything a module imports, also inside functions and for type checking."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_migrations_which_the_linter_cannot_see_know_the_ledger_alone() -> None:
    unseen = [module for module in PACKAGE.rglob("*.py") if not (module.parent / "__init__.py").exists()]
    assert {module.relative_to(PACKAGE).parts[:2] for module in unseen} == {("ledger", "migrations")}
    known = sys.stdlib_module_names | {"alembic", "sqlalchemy"}
    for name in (name for module in unseen for name in imports(module)):
        assert name.split(".")[0] in known or name.startswith("platform_assets.ledger."), name


def test_settings_are_loaded_where_a_process_begins_and_handed_over_from_there() -> None:
    """By the command line, Dagster's code location and webserver, scripts, rehearsals, what Dagster makes by name."""
    loading = {
        module.relative_to(PACKAGE)
        for module in PACKAGE.rglob("*.py")
        if not {"platform_assets.settings", "platform_assets.settings.load_settings"}.isdisjoint(imports(module))
    }
    begin = {
        "__init__.py",
        "definitions.py",
        "orchestration/instance/launcher.py",
        "orchestration/instance/storage.py",
        "orchestration/keeper.py",
        "orchestration/webserver.py",
    }
    assert {module.as_posix() for module in loading if module.parts[0] != "cli"} == begin


def test_importing_the_package_imports_no_room_and_no_library() -> None:
    found = run(
        sys.executable, "-c",
        "import sys; before = set(sys.modules); import platform_assets\n"
        "print({name for name in set(sys.modules) - before if name.split('.')[0] not in sys.stdlib_module_names})",
    )  # fmt: skip
    assert found == "{'platform_assets'}"


def test_history_is_imported_without_a_jvm() -> None:
    found = run(
        sys.executable, "-c",
        "import sys\n"
        "from importlib import import_module\n"
        "from pkgutil import walk_packages\n"
        "from platform_assets import lakehouse, ledger\n"
        "for room in (lakehouse, ledger):\n"
        "    [import_module(found.name) for found in walk_packages(room.__path__, f'{room.__name__}.')]\n"
        "assert {'platform_assets.lakehouse.reading', 'platform_assets.ledger.ledger'} <= set(sys.modules)\n"
        "print({'pyspark', 'py4j', 'delta', 'dagster_pyspark'} & set(sys.modules))",
    )  # fmt: skip
    assert found == "set()"


def test_the_definitions_load_in_a_fresh_interpreter() -> None:
    code = "from platform_assets.definitions import defs; print(len(list(defs.resolve_all_asset_specs())))"
    assert int(run(sys.executable, "-c", code)) > 0


def test_looking_at_the_machine_imports_no_spark() -> None:
    code = "import sys, platform_assets.cli.commands.doctor; print({'pyspark', 'dagster', 'pandas'} & set(sys.modules))"
    assert run(sys.executable, "-c", code) == "set()"
