"""backup and restore, and a ledger that is damaged or moved."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from random import Random

import pytest

import platform_assets
from platform_assets.lakehouse import publish as publishing
from platform_assets.lakehouse.errors import DamagedTableError, MovedLakeError
from platform_assets.lakehouse.horizon import Cut, Horizon
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import newest_release
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.opening import open_platform
from platform_assets.records.decisions import LateDecision
from platform_assets.records.manifest import Erasure
from platform_assets.secret import installation_secret, secret_file
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import DAY
from platform_assets_tests.support.ledger_records import approval, hold
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shelf import contents, day, publish_elsewhere, staged_manifest


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
    done = run("admin", "backup", folder, "--json").json
    assert (done["release"], done["before"], done["ledger"], done["gone"], done["damaged"]) == (1, -1, True, 0, [])
    assert "Nothing is new" in run("admin", "backup", folder).out
    more(published)
    refused = run("admin", "restore", folder)
    assert (refused.code, "is there already" in refused.err, "move it aside" in refused.err) == (3, True, True)
    shutil.rmtree(published.state)
    assert run("admin", "restore", folder, "--json").json["generation"] == done["generation"]
    assert run("status", "--json").out == before
    assert run("admin", "audit", "--all", "--read-all").code == 0
    assert installation_secret(published) == secret
    assert stat.S_IMODE(secret_file(published).stat().st_mode) == 0o600
    more(published)
    assert run("status").err == ""


def test_an_older_generation_can_be_restored_and_the_ledger_is_its_own(
    run: Run, published: Settings, folder: str
) -> None:
    before = run("status", "--json").out
    first = run("admin", "backup", folder, "--json").json["generation"]
    more(published)
    run("admin", "backup", folder)
    assert [each["release"] for each in run("admin", "restore", folder, "--list", "--json").json] == [1, 2]
    assert first in run("admin", "restore", folder, "--list").out
    shutil.rmtree(published.state)
    assert run("admin", "restore", folder, "--generation", first).code == 0
    assert run("status", "--json").out == before
    unknown = run("admin", "restore", folder, "--generation", "00009", "--rehearse")
    assert (unknown.code, "has no generation 00009" in unknown.err, first in unknown.err) == (3, True, True)
    assert (wrong := run("admin", "restore", folder, "--list", "--rehearse")).code == 2, wrong.err


def test_a_generation_from_before_an_erasure_does_not_come_back_silently(
    run: Run, published: Settings, folder: str
) -> None:
    first = run("admin", "backup", folder, "--json").json["generation"]
    lake = Lake.at(published.lake)
    said = Erasure(table=TABLE, key={"household_id": "hash"}, secret="of a test")
    update = {"kind": "erasure", "erasures": (said,), "who": "zoe", "why": "request 17"}
    done = staged_manifest(lake, {TABLE: {day(2): [("z", 3)]}}).model_copy(update=update)
    publish(lake, done)
    with open_platform(published):
        pass
    half = run("admin", "backup", folder)
    assert (half.code, "are not deleted yet" in half.err, "admin maintenance" in half.err) == (3, True, True)
    cut = Cut(before=newest_release(lake), publication=done.publication)
    lake.horizon_file.replace(Horizon(before=cut.before, cut=cut).model_dump_json().encode())
    second = run("admin", "backup", folder, "--json").json["generation"]
    listed = run("admin", "restore", folder, "--list", "--json").json
    assert [each["erased_since"] for each in listed] == [1, 0]
    shutil.rmtree(published.state)
    back = run("admin", "restore", folder, "--generation", first)
    shown = back.words
    assert (back.code, "Erased rows are back" in shown, "what zoe erased" in shown, "request 17" in shown) == (
        1,
        *[True] * 3,
    )
    assert "Call `platform-assets admin erase` again" in shown
    shutil.rmtree(published.state)
    assert run("admin", "restore", folder, "--generation", first, "--json").json["erased_since"] == [done.publication]
    shutil.rmtree(published.state)
    assert run("admin", "restore", folder, "--generation", second).code == 0


def test_a_rehearsal_finds_what_is_damaged_and_the_next_backup_replaces_it(
    run: Run, published: Settings, folder: str
) -> None:
    run("admin", "backup", folder)
    whole = run("admin", "restore", folder, "--rehearse")
    assert (whole.code, "Can be restored" in whole.out) == (0, True), whole.err
    copy = data_file(Path(folder) / "lake")
    content = copy.read_bytes()
    copy.unlink()
    copy.write_bytes(content[:-1])
    [fault] = run("admin", "restore", folder, "--rehearse", "--json").json["faults"]
    assert (fault["check"], fault["table"], fault["day"]) == ("files", TABLE, "2017-01-01")
    damaged = run("admin", "restore", folder, "--rehearse")
    assert (damaged.code, "Not to be relied on" in damaged.out, "backup` again" in damaged.out) == (1, True, True)
    copy.unlink()
    assert run("admin", "backup", folder, "--json").json["files"] == 1
    assert run("admin", "restore", folder, "--rehearse").code == 0
    assert sorted(path.name for path in Path(folder, "generations").iterdir() if path.name.startswith(".")) == []


def test_a_damaged_or_missing_ledger_replaces_no_good_one(run: Run, published: Settings, folder: str) -> None:
    run("admin", "backup", folder, "--keep", "1")
    good = (Path(folder) / "ledger.db").read_bytes()
    ledger = published.state / "ledger.db"
    content = ledger.read_bytes()
    ledger.write_bytes(content[:8192] + b"\xa5" * 8192 + content[16384:])
    assert (said := run("admin", "backup", folder, "--keep", "1")).code == 3
    assert "is damaged" in said.err
    for beside in published.state.glob("ledger.db*"):
        beside.unlink()
    assert "is not there" in run("admin", "backup", folder, "--keep", "1").err
    assert (Path(folder) / "ledger.db").read_bytes() == good
    assert run("admin", "restore", folder, "--rehearse").code == 0


def test_a_restore_that_was_cut_short_goes_on(
    run: Run, published: Settings, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("status", "--json").out
    run("admin", "backup", folder)
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
        assert run("admin", "restore", folder).code == 3
    assert newest_release(Lake.at(published.lake)) == -1, "nobody sees a part of it"
    assert run("admin", "restore", folder).code == 0
    assert run("status", "--json").out == before
    assert sorted(path.name for path in published.lake_folder.glob(".*")) == []


@pytest.mark.parametrize(
    "command",
    [
        (
            "admin",
            "backup",
        ),
        (
            "admin",
            "restore",
        ),
        ("admin", "restore", "--rehearse"),
    ],
    ids=" ".join,
)
def test_a_folder_that_is_no_backup_is_refused(run: Run, published: Settings, tmp_path: Path, command: tuple) -> None:
    (tmp_path / "own" / "lake").mkdir(parents=True)
    said = run(*command, str(tmp_path / "own"))
    assert (said.code, str(tmp_path / "own") in said.err, "Traceback" in said.err) == (3, True, False)


@pytest.mark.parametrize("point", ["replace.after_commit", "release.after_commit"])
def test_a_dead_publication_is_finished_indexed_and_named(
    run: Run, published: Settings, tmp_path: Path, point: str
) -> None:
    lake = Lake.at(published.lake)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}, "gold.other": {day(2): [("y", 2)]}})
    publish_elsewhere(lake, dying, tmp_path, point)
    said = run("admin", "recover")
    assert (said.code, said.err) == (0, "")
    if point == "replace.after_commit":
        assert f"Finished publication {dying.publication} as release 2." in said.out
    assert f"The ledger is up to date; it lacked {dying.publication} (release 2)." in said.out
    assert contents(lake, "gold.other") == {day(2): [("y", 2)]}
    assert run("admin", "recover").out == "Nothing to recover: release 2 shows all that was begun.\n"
    assert run("admin", "audit").code == 0


def test_what_cannot_be_finished_is_undone_where_a_person_says_so(
    run: Run, published: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody died half-way who had lost the lock, and was to publish on a release that others went beyond."""
    lake = Lake.at(published.lake)
    shown = contents(lake, TABLE)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}, "gold.new": {day(2): [("y", 2)]}})
    dying = dying.model_copy(update={"on_release": 1})
    publish_elsewhere(lake, dying, tmp_path, "publish.before_release")
    with monkeypatch.context() as lost:
        lost.setattr(publishing, "finish_pending", lambda *_: None)  # it had looked before the other one began
        publishing.publish(lake, staged_manifest(lake, {"gold.other": {day(0): [("z", 3)]}}))
    refused = run("admin", "recover")
    assert refused.code == 3
    assert f"ahead of release 2, by publications {dying.publication}" in refused.err
    assert "platform-assets admin recover --undo" in refused.error
    assert run("admin", "recover", "--undo").code == 2, "a decision needs a reason"

    said = run("admin", "recover", "--undo", "--reason", "the file server was restarted")
    assert (said.code, said.err) == (0, "")
    assert run("status", "decisions", "--json").json[0]["decision"]["kind"] == "recovery"
    assert f"Undid {dying.publication} in {TABLE}, which no release shows." in said.out
    assert contents(lake, TABLE) == shown
    assert contents(lake, "gold.other") == {day(0): [("z", 3)]}
    assert run("admin", "recover").out == "Nothing to recover: release 3 shows all that was begun.\n"
    assert publishing.publish(lake, staged_manifest(lake, {TABLE: {day(2): [("x", 2)]}})) == 4


COMMANDS = (
    ["status", "releases"],
    ["status", "releases", "0"],
    ["status"],
    ["refresh"],
    ["admin", "pin", "0", "--reason", "x"],
)
READERS = (["read", TABLE], ["read", TABLE, "--release", "0"], ["read", "--views", "duckdb"])


def indexed(settings: Settings) -> dict[str, int]:
    with open_platform(settings) as platform:
        return platform.ledger.indexed()


@pytest.mark.parametrize("empty", [False, True])
def test_a_lake_that_is_gone_is_named_and_found_again_elsewhere(
    run: Run, published: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    before, moved = indexed(published), tmp_path / "moved here"
    shutil.move(published.lake_folder, moved)
    if empty:
        published.lake_folder.mkdir()
    for command in (*COMMANDS, *READERS):
        said = run(*command)
        assert said.code == 3, command
        assert f"up to 1 (publication {max(before)}), and the lake {published.lake_folder} has no release" in said.err
        assert "name its folder in PLATFORM_LAKE" in said.err
    with pytest.raises(MovedLakeError, match="PLATFORM_LAKE"):
        platform_assets.read(TABLE)
    assert run("admin", "doctor").code == 1
    assert "PLATFORM_LAKE" in run("admin", "doctor", "--json").out
    assert list(published.lake_folder.rglob("*")) == []
    assert published.lake_folder.exists() == empty

    monkeypatch.setenv("PLATFORM_LAKE", str(moved))
    assert platform_assets.read(TABLE).num_rows == 3
    assert [one["release"] for one in run("status", "releases", "--json").json] == [1, 0]


def test_another_lake_in_its_place_is_named_and_taken_only_if_asked_for(run: Run, published: Settings) -> None:
    before = indexed(published)
    shutil.rmtree(published.lake_folder)
    lake = Lake.at(published.lake_folder)
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [("other", 1)]}}))
    for command in COMMANDS:
        said = run(*command)
        assert said.code == 3, command
        assert "none of these releases but others" in said.err
    assert run("admin", "ledger", "--rebuild").code == 0
    assert len(indexed(published)) == 1
    assert not indexed(published).keys() & before.keys()


def test_a_lake_copied_without_a_table_or_its_files_says_which(run: Run, published: Settings) -> None:
    shutil.rmtree(published.lake_folder / "gold" / "daily_sales" / "_delta_log")
    said = run("read", TABLE)
    assert said.code == 3
    assert f"{TABLE} has no version 1" in said.err
    with pytest.raises(DamagedTableError, match="restore the table from a backup"):
        platform_assets.read(TABLE, engine="duckdb")


LOOKING = (["status"], ["status", "stale"], ["why", TABLE, "2017-01-01"], ["status", "late"], ["admin", "audit"])


@pytest.fixture
def file(published: Settings) -> Path:
    with open_platform(published) as platform:
        platform.ledger.decide(approval())
    return published.state / "ledger.db"


def damage(file: Path, seed: int, bytes_: int) -> None:
    content, random = bytearray(file.read_bytes()), Random(seed)
    for place in random.sample(range(4096, len(content)), bytes_):
        content[place] ^= 1 + random.randrange(255)
    file.write_bytes(content)


@pytest.mark.parametrize("seed", range(2))
def test_no_command_ends_in_a_traceback_and_a_rebuild_makes_it_good(
    run: Run, published: Settings, file: Path, seed: int
) -> None:
    before = run("status", "--json").out
    damage(file, seed, 200)
    damaged = file.read_bytes()
    for command in LOOKING:
        said = run(*command)
        assert said.code in (1, 3), (command, said.out)
        assert "is damaged or is not a ledger" in said.out + said.err
        assert "ledger --rebuild" in said.out + said.err
    done = run("admin", "ledger", "--rebuild", "--json").json
    assert Path(done["set_aside"]).read_bytes() == damaged
    assert done["publications"] == 2
    assert run("status", "--json").out == before
    assert run("admin", "audit").code == 0


def test_what_people_decided_is_read_out_of_what_is_left(run: Run, published: Settings, file: Path) -> None:
    content = file.read_bytes()
    # A name in a row is no longer what the index of rows says it is; decisions lie on other pages.
    with Ledger.open(published.ledger_url.get_secret_value(), read_only=True) as ledger:
        decided = ledger.decisions(LateDecision)
        name = next(iter(ledger.indexed()))
    assert decided
    file.write_bytes(content.replace(name.encode(), name.encode()[:-1] + b"!", 1))
    assert run("status").code == 3
    said = run("admin", "ledger", "--rebuild")
    assert (said.code, "2 rows of holds and people's decisions" in said.out) == (0, True), said.err
    with Ledger.open(published.ledger_url.get_secret_value(), read_only=True) as ledger:
        assert ledger.decisions(LateDecision) == decided


TOLD = (
    ("status", "--json"),
    ("status", "releases", "--json"),
    ("status", "decisions", "--json"),
    ("admin", "audit", "--head", "--json"),
)


@pytest.fixture
def decided(published: Settings) -> Settings:
    """A platform on SQLite, with a hold and a decision."""
    with open_platform(published) as platform:
        platform.ledger.hold([hold(DAY)])
        platform.ledger.decide(approval())
    return published


def test_a_ledger_is_moved_dumped_lost_and_restored(
    run: Run,
    decided: Settings,
    postgres_server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = [run(*command).out for command in TOLD]
    url = postgres_server.new_database()
    monkeypatch.setenv("PLATFORM_LEDGER_URL", url)
    said = run("admin", "ledger", "--move")
    assert (said.code, "Moved" in said.out, "PLATFORM_LEDGER_URL" in said.out) == (0, True, True)
    assert [run(*command).out for command in TOLD] == before
    assert run("admin", "audit").code == 0

    dump, backup = tmp_path / "ledger.dump", tmp_path / "backup"
    postgres_server.run("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={url}")
    assert run("admin", "backup", str(backup)).code == 0

    shutil.rmtree(load_settings().lake_folder)
    lost = postgres_server.new_database()
    monkeypatch.setenv("PLATFORM_LEDGER_URL", lost)
    postgres_server.run("pg_restore", "--no-owner", f"--dbname={lost}", str(dump))
    assert run("admin", "restore", str(backup)).code == 0
    assert [run(*command).out for command in TOLD] == before
    assert run("admin", "audit").code == 0
    assert run("read", TABLE, "--json").json["rows"]
    with Ledger.open(lost) as ledger:
        assert (len(ledger.holds()), len(ledger.decisions(LateDecision))) == (1, 1)
        ledger.decide(approval())
