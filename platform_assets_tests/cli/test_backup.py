"""`backup` and `restore`: what a person takes, tries and gets back, without Spark."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from platform_assets.lakehouse.horizon import Cut, Horizon
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import newest_release
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Erasure
from platform_assets.secret import installation_secret, secret_file
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import day, staged_manifest


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "backup")


def more(settings: Settings, n: int = 3) -> None:
    """One more publication, indexed."""
    lake = Lake.at(settings.lake)
    publish(lake, staged_manifest(lake, {TABLE: {day(2): [("z", n)]}}))
    with open_platform(settings):
        pass


def data_file(lake: Path) -> Path:
    [file] = on_disk(Lake.at(lake).table_path(TABLE)).glob("*/event_date=2017-01-01/*.parquet")
    return file


def test_what_is_restored_is_what_was_there(run: Run, published: Settings, folder: str) -> None:
    before, secret = run("status", "--json").out, installation_secret(published)
    done = run("backup", folder, "--json").json
    assert (done["release"], done["before"], done["ledger"], done["gone"], done["damaged"]) == (1, -1, True, 0, [])
    assert "Nothing is new" in run("backup", folder).out
    more(published)
    refused = run("restore", folder)
    assert (refused.code, "is there already" in refused.err, "move it aside" in refused.err) == (3, True, True)
    shutil.rmtree(published.state)
    assert run("restore", folder, "--json").json["generation"] == done["generation"]
    assert run("status", "--json").out == before
    assert run("audit", "verify", "--all", "--read-all").code == 0
    assert installation_secret(published) == secret
    assert stat.S_IMODE(secret_file(published).stat().st_mode) == 0o600
    more(published)
    assert run("status").err == ""


def test_an_older_generation_can_be_restored_and_the_ledger_is_its_own(
    run: Run, published: Settings, folder: str
) -> None:
    before = run("status", "--json").out
    first = run("backup", folder, "--json").json["generation"]
    more(published)
    run("backup", folder)
    assert [each["release"] for each in run("restore", folder, "--list", "--json").json] == [1, 2]
    assert first in run("restore", folder, "--list").out
    shutil.rmtree(published.state)
    assert run("restore", folder, "--generation", first).code == 0
    assert run("status", "--json").out == before
    unknown = run("restore", folder, "--generation", "00009", "--rehearse")
    assert (unknown.code, "has no generation 00009" in unknown.err, first in unknown.err) == (3, True, True)
    assert (wrong := run("restore", folder, "--list", "--rehearse")).code == 2, wrong.err


def test_a_generation_from_before_an_erasure_does_not_come_back_silently(
    run: Run, published: Settings, folder: str
) -> None:
    first = run("backup", folder, "--json").json["generation"]
    lake = Lake.at(published.lake)
    said = Erasure(table=TABLE, key={"household_id": "hash"}, secret="of a test")
    update = {"kind": "erasure", "erasures": (said,), "who": "zoe", "why": "request 17"}
    done = staged_manifest(lake, {TABLE: {day(2): [("z", 3)]}}).model_copy(update=update)
    publish(lake, done)
    with open_platform(published):
        pass
    half = run("backup", folder)
    assert (half.code, "are not deleted yet" in half.err, "maintenance run" in half.err) == (3, True, True)
    cut = Cut(before=newest_release(lake), publication=done.publication)
    lake.horizon_file.replace(Horizon(before=cut.before, cut=cut).model_dump_json().encode())
    second = run("backup", folder, "--json").json["generation"]
    listed = run("restore", folder, "--list", "--json").json
    assert [each["erased_since"] for each in listed] == [1, 0]
    shutil.rmtree(published.state)
    back = run("restore", folder, "--generation", first)
    shown = " ".join(back.out.split())
    assert (back.code, "Erased rows are back" in shown, "what zoe erased" in shown, "request 17" in shown) == (
        1,
        *[True] * 3,
    )
    assert "Call `platform-assets erase` again" in shown
    shutil.rmtree(published.state)
    assert run("restore", folder, "--generation", first, "--json").json["erased_since"] == [done.publication]
    shutil.rmtree(published.state)
    assert run("restore", folder, "--generation", second).code == 0


def test_a_rehearsal_finds_what_is_damaged_and_the_next_backup_replaces_it(
    run: Run, published: Settings, folder: str
) -> None:
    run("backup", folder)
    whole = run("restore", folder, "--rehearse")
    assert (whole.code, "Can be restored" in whole.out) == (0, True), whole.err
    copy = data_file(Path(folder) / "lake")
    content = copy.read_bytes()
    copy.unlink()
    copy.write_bytes(content[:-1])
    [fault] = run("restore", folder, "--rehearse", "--json").json["faults"]
    assert (fault["check"], fault["table"], fault["day"]) == ("files", TABLE, "2017-01-01")
    damaged = run("restore", folder, "--rehearse")
    assert (damaged.code, "Not to be relied on" in damaged.out, "backup` again" in damaged.out) == (1, True, True)
    copy.unlink()
    assert run("backup", folder, "--json").json["files"] == 1
    assert run("restore", folder, "--rehearse").code == 0
    assert sorted(path.name for path in Path(folder, "generations").iterdir() if path.name.startswith(".")) == []


def test_damage_in_the_lake_is_named_and_exits_with_1_while_the_backup_stays_good(
    run: Run, published: Settings, folder: str
) -> None:
    run("backup", folder)
    data_file(published.lake_folder).write_bytes(b"PAR1")
    more(published)
    said = run("backup", folder)
    assert (said.code, "damaged" in said.out, "The backup keeps the good one" in said.out) == (1, True, True)
    assert run("restore", folder, "--rehearse").code == 0
    assert run("audit", "verify").code == 1, "the lake itself is still damaged"


def test_a_damaged_or_missing_ledger_replaces_no_good_one(run: Run, published: Settings, folder: str) -> None:
    run("backup", folder, "--keep", "1")
    good = (Path(folder) / "ledger.db").read_bytes()
    ledger = published.state / "ledger.db"
    content = ledger.read_bytes()
    ledger.write_bytes(content[:8192] + b"\xa5" * 8192 + content[16384:])
    assert (said := run("backup", folder, "--keep", "1")).code == 3
    assert "is damaged" in said.err
    for beside in published.state.glob("ledger.db*"):
        beside.unlink()
    assert "is not there" in run("backup", folder, "--keep", "1").err
    assert (Path(folder) / "ledger.db").read_bytes() == good
    assert run("restore", folder, "--rehearse").code == 0


def test_a_restore_that_was_cut_short_goes_on(
    run: Run, published: Settings, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("status", "--json").out
    run("backup", folder)
    looked_into = Path(folder, "lake", "_locks")  # a command that was run with the backup as its state folder
    looked_into.mkdir(exist_ok=True)
    (looked_into / "publish.holder.json").write_text("{}")
    shutil.rmtree(published.state)
    copy, left = shutil.copy2, [6]

    def full(source: Path, target: Path) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device", str(target))
        return copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", full)
        assert run("restore", folder).code == 3
    assert newest_release(Lake.at(published.lake)) == -1, "nobody sees a part of it"
    assert run("restore", folder).code == 0
    assert run("status", "--json").out == before
    assert sorted(path.name for path in published.lake_folder.glob(".*")) == []


@pytest.mark.parametrize("command", [("backup",), ("restore",), ("restore", "--rehearse")], ids=" ".join)
def test_a_folder_that_is_no_backup_is_refused(run: Run, published: Settings, tmp_path: Path, command: tuple) -> None:
    (tmp_path / "own" / "lake").mkdir(parents=True)
    said = run(*command, str(tmp_path / "own"))
    assert (said.code, str(tmp_path / "own") in said.err, "Traceback" in said.err) == (3, True, False)
