"""What other users of this machine see of an installation, and what is shown where nothing can be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.ledger.errors import LedgerFullError
from platform_assets.operations.opening import open_platform
from platform_assets.places import is_ours_alone
from platform_assets.secret import installation_secret
from platform_assets.settings import Settings, SettingsError, load_settings, project_root
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.other_user import NOBODY, a_place_for_all, as_other_user, needs_root, readable
from platform_assets_tests.support.shelf import day, staged_manifest

HIDDEN = ("quarantine.stores", "refused.stores", "late.stores")
OWN_GROUP = os.getegid()


@pytest.fixture
def place(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody reaches, with an installation in it; its processes begin as a shell's do."""
    before = os.umask(0o022)
    with a_place_for_all() as folder:
        monkeypatch.setenv("PLATFORM_STATE", str(folder / "state"))
        yield folder
    os.umask(before)


def fill(run: Run) -> None:
    """Rows in a table, and in those of what broke a rule, as a command's process writes them."""
    assert run("status").code in (0, 1)
    os.umask(load_settings().access.umask)
    lake = Lake.at(load_settings().lake)
    publish(lake, staged_manifest(lake, {table: {day(0): [("key", 1)]} for table in ("gold.stores", *HIDDEN)}))
    assert run("status").code in (0, 1)


@needs_root
def test_nobody_else_reads_a_default_installation_or_opens_its_locks(place: Path, run: Run) -> None:
    fill(run)
    state = place / "state"
    assert [path.stat().st_mode & 0o777 for path in (state, state / "ledger.db")] == [0o700, 0o600]
    lock = state / "lake" / "_locks" / "publish.lock"
    assert is_ours_alone(lock)
    assert readable(place) == ["control"]
    looked = "print(json.dumps([can(os.O_RDONLY, place / 'control'), can(os.O_RDONLY, Path(sys.argv[1]))]))"
    assert as_other_user(place, looked.replace("sys.argv[1]", repr(str(lock)))) == [True, False]


@needs_root
@pytest.mark.parametrize(("mode", "writes"), [("750", False), ("0770", True)])
def test_a_group_reads_or_works_with_the_state_where_the_setting_says_so(
    mode: str, writes: bool, place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_STATE_MODE", mode)
    fill(run)
    installation_secret(load_settings())
    assert readable(place) == ["control"]
    assert "state/ledger.db" in readable(place, [OWN_GROUP])
    # Whoever works there masks values, and tells erased rows; whoever only looks needs no key.
    assert ("state/secret" in readable(place, [OWN_GROUP])) is writes
    tried = "can(os.O_RDWR, place / 'state/ledger.db'), can(os.O_RDWR | os.O_CREAT, place / 'state/new')"
    probe = f"print(json.dumps([{tried}]))"
    assert as_other_user(place, probe, groups=[OWN_GROUP]) == [writes, writes]
    if writes:
        assert (place / "state/new").stat().st_gid == OWN_GROUP != NOBODY


@needs_root
def test_a_lake_for_all_shows_its_tables_and_neither_what_was_set_aside_nor_its_locks(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_LAKE", str(place / "lake"))
    monkeypatch.setenv("PLATFORM_LAKE_MODE", "755")
    fill(run)
    seen = readable(place)
    assert {path.split("/")[1] for path in seen if path.startswith("lake/")} == {"gold", "_releases"}
    assert not [path for path in seen if path.startswith("state/")]
    read = "print(json.dumps(read_arrow(Lake.at(place / 'lake'), 'gold.stores').column('key').to_pylist()))"
    imports = (
        "import deltalake, pyarrow.dataset, pyarrow.parquet\n"
        "from platform_assets.lakehouse.layout import Lake\nfrom platform_assets.lakehouse.reading import read_arrow"
    )
    assert as_other_user(place, read, imports=imports) == ["key"]
    (place / "lake" / "quarantine").chmod(0o755)  # as a copy or another tool leaves it
    [found] = [finding for finding in run("admin", "doctor", "--json").json if finding["name"] == "Who may look"]
    assert not found["ok"]
    assert run("status").code in (0, 1)
    assert not [path for path in readable(place) if "quarantine" in path]


def test_a_lake_in_the_state_folder_cannot_be_open_to_more_people(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_LAKE_MODE", "755")
    said = run("status")
    assert said.code == 3
    assert "lies in the state folder, where state_mode 700 does not" in said.err
    monkeypatch.setenv("PLATFORM_LAKE_MODE", "777")
    with pytest.raises(SettingsError, match="lake_mode"):
        load_settings()


def test_doctor_tells_an_open_state_folder_with_the_command_that_closes_it(place: Path, run: Run) -> None:
    state = place / "state"
    state.mkdir(mode=0o755)
    (state / "old").write_text("from before")
    [found] = [finding for finding in run("admin", "doctor", "--json").json if finding["name"] == "Who may look"]
    assert not found["ok"]
    assert found["message"] == f"{state} is open to every user of this machine."
    subprocess.run(["bash", "-c", found["todo"]], check=True)
    assert [path.stat().st_mode & 0o077 for path in (state, state / "old")] == [0, 0]
    [found] = [finding for finding in run("admin", "doctor", "--json").json if finding["name"] == "Who may look"]
    assert found["ok"]


def test_a_state_folder_that_was_made_to_land_files_in_is_closed_when_it_is_first_used(place: Path, run: Run) -> None:
    """As `docs/first-table.md` and `init` have a newcomer do it."""
    state = place / "state"
    (state / "landing" / "sales").mkdir(parents=True)
    assert state.stat().st_mode & 0o077
    for command in (["admin", "doctor", "--json"], ["status"], ["admin", "doctor", "--json"]):
        said = run(*command)
        if "doctor" in command:
            assert [finding["ok"] for finding in said.json if finding["name"] == "Who may look"] == [True]
    assert state.stat().st_mode & 0o7777 == 0o700


def dagster_begins(place: Path) -> None:
    """Webserver or daemon started by hand, before any command of ours."""
    home = place / "home"
    home.mkdir()
    text = (project_root() / "dagster.yaml").read_text().replace(".platform/", f"{place}/state/")
    (home / "dagster.yaml").write_text(text)
    program = f"import dagster as dg\nwith dg.DagsterInstance.from_config({str(home)!r}) as i: i.get_runs()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.proof
def test_what_dagster_keeps_is_private_also_in_an_open_state_folder_beside_a_lake_for_all(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "state").mkdir(mode=0o755)
    (place / "state" / "old").touch()  # so that it stays as it is
    monkeypatch.setenv("PLATFORM_LAKE", str(place / "lake"))
    monkeypatch.setenv("PLATFORM_LAKE_MODE", "755")
    dagster_begins(place)
    folder = place / "state" / "dagster"
    assert (folder.stat().st_mode & 0o777, bool([*folder.rglob("*.db")])) == (0o700, True)


def test_a_backup_is_private_wherever_it_lies(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_LAKE", str(place / "lake"))
    monkeypatch.setenv("PLATFORM_LAKE_MODE", "755")
    fill(run)
    assert run("admin", "backup", str(place / "backup")).code == 0
    assert (place / "backup").stat().st_mode & 0o777 == 0o700


LOOKING = [["status"], ["status", "stale"], ["why", SILVER, "2017-01-02"], ["status", "releases"], ["status", "late"]]


@pytest.fixture
def disk(products: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The installation on a small disk of its own."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mounted], check=True)
    copytree(products.state, mounted / "state", symlinks=True)
    monkeypatch.setenv("PLATFORM_STATE", str(mounted / "state"))
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def forbid_writing(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def fill_disk(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


if os.geteuid() == 0:  # not skipped but left out: only root can mount a disk

    @pytest.mark.parametrize("harm", [forbid_writing, fill_disk], ids=["read_only", "full"])
    def test_what_only_looks_works_where_nothing_can_be_written(
        run: Run, disk: Path, harm: Callable[[Path], None]
    ) -> None:
        before = [run(*args).out for args in LOOKING]
        harm(disk)
        for args, out in zip(LOOKING, before, strict=True):
            done = run(*args)
            assert done.code in (0, 1), done.err
            assert done.out == out
            assert "the disk or ledger cannot be written, so the platform is open read-only" in done.err

    @pytest.mark.parametrize("harm", [forbid_writing, fill_disk], ids=["read_only", "full"])
    def test_what_the_ledger_had_no_room_for_any_more_is_shown(
        run: Run, disk: Path, harm: Callable[[Path], None]
    ) -> None:
        lake = Lake.at(load_settings().lake)
        manifest = staged_manifest(lake, {TABLE: {day(0): [("a", 150)]}})
        publish(lake, manifest)
        harm(disk)
        assert manifest.publication in run("status", "releases").out

    def test_who_finds_the_disk_full_is_not_told_that_nothing_was_changed(run: Run, disk: Path) -> None:
        """The ledger comes last: what it has no room for may be published."""
        lake = Lake.at(load_settings().lake)
        publish(lake, staged_manifest(lake, {TABLE: {day(0): [("a", 150)]}}))
        fill_disk(disk)
        with pytest.raises(LedgerFullError) as told, open_platform(load_settings()):
            pass
        assert "no room left" in told.value.what
        assert "nothing was changed" not in str(told.value)
        assert "What was published stays" in told.value.todo
        done = run("admin", "recover")
        assert done.code == 3
        assert "Free some disk space" in done.err
