"""Settings: where values come from, which of them wins, and what a bad one is told."""

from __future__ import annotations

import traceback
from datetime import date
from pathlib import Path

import pytest

from platform_assets import settings as module
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.places import for_hadoop, names_bucket
from platform_assets.settings import SettingsError, load_settings


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, so that no file of the developer's is read."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setattr(module, "project_root", lambda: folder)
    return folder


def test_everything_of_a_default_installation_lies_in_one_folder_of_the_project(project: Path) -> None:
    settings = load_settings()
    state = project / ".platform"
    assert settings.state == state
    assert (settings.lake_folder, settings.landing_folder, settings.jars) == (
        state / "lake",
        state / "landing",
        state / "jars",
    )
    assert settings.ledger_url.get_secret_value() == f"sqlite:///{state}/ledger.db"


def test_arguments_win_over_variables_over_the_projects_file_over_the_state_folders(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = project / ".platform"
    state.mkdir()
    (state / "settings.toml").write_text('batch_days = 1\nsettle_s = 1\nlog_level = "ERROR"\ntoday = 2017-03-01\n')
    (project / "platform.toml").write_text('batch_days = 2\nsettle_s = 2\nlog_level = "DEBUG"\n')
    monkeypatch.setenv("PLATFORM_BATCH_DAYS", "3")
    monkeypatch.setenv("PLATFORM_SETTLE_S", "3")
    settings = load_settings(batch_days=4)
    assert (settings.batch_days, settings.settle_s, settings.log_level) == (4, 3, "DEBUG")
    assert settings.today == date(2017, 3, 1)


@pytest.mark.parametrize("named_by", ["argument", "variable", "project file"])
def test_the_state_folder_that_was_named_is_the_one_whose_settings_count(
    named_by: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, days in ((project / ".platform", 1), (tmp_path / "other", 7)):
        folder.mkdir()
        (folder / "settings.toml").write_text(f"batch_days = {days}\n")
    other = str(tmp_path / "other")
    if named_by == "variable":
        monkeypatch.setenv("PLATFORM_STATE", other)
    if named_by == "project file":
        (project / "platform.toml").write_text(f"state = '{other}'\n")
    settings = load_settings(**({"state": other} if named_by == "argument" else {}))
    assert (settings.batch_days, settings.lake_folder) == (7, tmp_path / "other" / "lake")


@pytest.mark.parametrize(
    ("variable", "field", "meant"),
    [
        ("var/state", "state", "{project}/var/state"),
        ("", "state", "{project}/.platform"),
        ("~/state", "state", "{home}/state"),
        ("~/lake", "lake", "{home}/lake"),
        ("elsewhere", "lake", "{project}/.platform/elsewhere"),
        ("/srv/lake", "lake", "/srv/lake"),
    ],
)
def test_folders_mean_the_same_from_every_working_directory(
    variable: str, field: str, meant: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(f"PLATFORM_{field.upper()}", variable)
    here = getattr(load_settings(), field)
    monkeypatch.chdir(tmp_path)
    assert getattr(load_settings(), field) == here
    assert str(here) == meant.format(project=project, home=tmp_path / "home")


def test_variables_hold_dates_lists_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", "2020-02-29")
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", "")
    monkeypatch.setenv("PLATFORM_TODAY", "2020-03-01")
    monkeypatch.setenv("PLATFORM_DOMAINS", "a.b, c.d")
    monkeypatch.setenv("PLATFORM_SPARK_CONF", '{"spark.sql.shuffle.partitions": 4, "spark.ui.enabled": true}')
    settings = load_settings()
    assert settings.calendar() == (date(2020, 2, 29), date(2020, 3, 1))
    assert settings.domains == ("a.b", "c.d")
    assert settings.spark_conf == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "true"}


def test_the_calendar_ends_today_or_where_it_is_declared_to() -> None:
    def days(**given: object) -> int:
        return len(load_settings(calendar_first="2017-01-01", **given).calendar())

    assert days(calendar_last="2017-01-03", today="2024-01-01") == 3
    assert days(calendar_last="2017-01-03", today="2017-01-02") == 2
    assert days(calendar_last="2017-01-03", today="2016-12-31") == 0
    assert days(calendar_last="", today="2017-01-31") == 31


def test_a_misspelt_variable_is_no_setting_that_is_silently_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_BRANCH", "main")  # of another tool
    load_settings()
    monkeypatch.setenv("PLATFORM_BATCH_DAY", "7")
    with pytest.raises(SettingsError, match="PLATFORM_BATCH_DAY") as caught:
        load_settings()
    assert "PLATFORM_BATCH_DAYS" in caught.value.todo


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLATFORM_CALENDAR_FIRST", "yesterday"),
        ("PLATFORM_TODAY", "2017-02-30"),
        ("PLATFORM_BATCH_DAYS", "0"),
        ("PLATFORM_SETTLE_S", "-1"),
        ("PLATFORM_PART_MIB", "inf"),
        ("PLATFORM_PART_MIB", "0.001"),
        ("PLATFORM_LOG_LEVEL", "LOUD"),
        ("PLATFORM_SPARK_MASTER", "lokal"),
        ("PLATFORM_SPARK_DRIVER_MEMORY", "a lot"),
        ("PLATFORM_SPARK_CONF", "spark.ui.enabled=true"),
        ("PLATFORM_FILES_PER_RUN", "0"),
        ("PLATFORM_UI_URL", "127.0.0.1:3000"),
        ("PLATFORM_UI_ORIGINS", "dagster.example.com"),
        ("PLATFORM_UI_ORIGINS", "https://dagster.example.com/shop"),
        ("PLATFORM_UI_ORIGINS", "https://*.example.com"),
        ("PLATFORM_LAKE", "s3://bucket:9000/lake"),
        ("PLATFORM_LAKE", "s3://bucket/a/../b"),
        ("PLATFORM_LAKE", "abfss://lake/of/nobody"),
        ("PLATFORM_LAKE", "abfss://lake@account.dfs.core.windows.net:444/lake"),
        ("PLATFORM_LAKE", "abfss://lake@account.elsewhere.net/lake"),
        ("PLATFORM_LAKE", "az://container/lake"),
        ("PLATFORM_LAKE", "gs://bucket/lake"),
        ("PLATFORM_STATE", "abfss://lake@account.dfs.core.windows.net/"),
    ],
)
def test_a_bad_variable_is_named_with_what_came(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert name.removeprefix("PLATFORM_").lower() in caught.value.what
    assert name == "PLATFORM_SPARK_CONF" or repr(value) in caught.value.what
    assert "PLATFORM_" in caught.value.todo


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://a-key:planted@bucket/lake", "s3://***@bucket/lake"),
        ("s3://a-key:x/planted@bucket/lake", "s3://***@bucket/lake"),
        ("s3://planted@bucket", "s3://***@bucket"),
        ("s3://bucket/lake?sig=planted", "s3://bucket/lake***"),
        ("https://u:planted@host/lake#planted", "https://***@host/lake***"),
        ("abfss://c@account.dfs.core.windows.net/l?sv=1&sig=planted", "abfss://c@account.dfs.core.windows.net/l***"),
        ("abfss://c:planted@account.dfs.core.windows.net/l", "abfss://***@account.dfs.core.windows.net/l"),
    ],
)
def test_what_people_put_into_a_url_for_keys_and_signatures_is_not_shown(
    url: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "planted" in url
    for name in ("PLATFORM_LAKE", "PLATFORM_LANDING"):
        with monkeypatch.context() as patched:
            patched.setenv(name, url)
            with pytest.raises(SettingsError) as caught:
                load_settings()
        assert repr(shown) in caught.value.what
        assert "planted" not in str(caught.value)
    if not names_bucket(url):
        with pytest.raises(LakeError, match="A lake cannot be in") as refused:
            located(url)
        assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("spark.sql.session.timeZone", "America/New_York", "has to be UTC"),
        ("spark.sql.ansi.enabled", False, "has to be true"),
        ("spark.sql.caseSensitive", "true", "has to be false"),
        ("spark.sql.storeAssignmentPolicy", "LEGACY", "has to be ANSI"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN", "has to be EXCEPTION"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", "has to be CORRECTED"),
        ("spark.sql.legacy.sizeOfNull", "true", "has to stay as Spark has it"),
        ("spark.sql.ansi.strictIndexOperator", "false", "has to stay as Spark has it"),
        ("spark.sql.files.ignoreMissingFiles", "true", "has to be false"),
        ("spark.driver.extraJavaOptions", '-Xss4m -Duser.language="tr"', "has to be en"),
        ("spark.hadoop.mapred.linerecordreader.maxlength", 20, "has to be left out"),
        ("mapreduce.input.pathFilter.class", "org.example.Filter", "has to be left out"),
    ],
)
def test_a_setting_of_spark_that_changes_what_days_come_out_as_is_refused_by_name(
    name: str, value: object, told: str
) -> None:
    with pytest.raises(SettingsError, match=rf"spark_conf.*{name}, which {told}"):
        load_settings(spark_conf={name: value})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lake", "s3:/our-bucket/lake", "must be a folder of this machine, or a URL like s3://bucket/folder or abfss"),
        ("lake", "s3:our-bucket/lake", "must be a folder"),
        ("lake", "S3:///our-bucket", "must be a folder"),
        ("landing", "abfss:/c@a.dfs.core.windows.net", "must be a folder"),
        ("lake", "file:/srv/lake", "must be a folder"),
        ("landing", "hdfs:/deliveries", "must be a folder"),
        ("jars", "", "must name a folder"),
        ("plans", "", "must name a folder"),
        ("spark_master", "spark.example.com:7077", r"like local\[\*\], spark://host:7077"),
        ("spark_remote", "spark.example.com:15002", "must begin with sc://"),
        ("spark_driver_memory", "3 GB", "like 3g or 512m"),
        ("sail_memory", "3gb", "like 3g or 512m"),
        ("ui_url", "dagster.example.com", "like https://dagster"),
    ],
)
def test_how_a_setting_is_written_is_told_by_an_example(name: str, value: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        load_settings(**{name: value})
    assert not {"pattern", "^", "Value error"} & {*str(caught.value).split(), *str(caught.value)}


@pytest.mark.parametrize("folder", ["s3", "hdfs", "azure", "file", "my:folder/lake", "C:/lake", "s3/our-bucket"])
def test_a_folder_may_be_called_what_it_likes(folder: str) -> None:
    assert load_settings(lake=folder).lake.endswith(folder)


@pytest.mark.parametrize("field", ["state", "jars"])
@pytest.mark.parametrize("odd", [":", '"', "\\", "\n"])
def test_a_folder_that_java_cannot_be_told_of_is_refused_with_the_character(field: str, odd: str) -> None:
    with pytest.raises(SettingsError, match="in its path") as caught:
        load_settings(**{field: Path(f"/srv/a{odd}b")})
    assert repr(odd) in caught.value.what
    usable = Path("/srv/it's a {folder}, (1); ü*%20")
    assert getattr(load_settings(**{field: usable}), field) == usable


def test_a_folder_that_begins_with_two_slashes_is_the_one_with_one() -> None:
    """As of `$ROOT/landing` where the root is `/`: Hadoop took what follows for a machine, and refused every file."""
    settings = load_settings(state="//srv/state", lake="//srv/lake", landing="//srv/landing")
    assert (settings.lake, settings.landing) == ("/srv/lake", "/srv/landing")
    assert str(settings.state) == "/srv/state"
    assert for_hadoop("//srv/landing/a.csv") == "file:/srv/landing/a.csv"


def test_json_that_cannot_be_read_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_SPARK_CONF", "{spark.executor.memory: 4g}")
    with pytest.raises(SettingsError, match=r"spark_conf.*double quotes: line 1 column 2.*\n.*executor") as caught:
        load_settings()
    assert "4g}" not in caught.value.what


def test_a_language_or_zone_that_java_is_told_of_is_refused_as_another_setting_is() -> None:
    own = "spark.driver.extraJavaOptions"
    for options in ("-Xss8m -Duser.language=tr", '"-Duser.timezone=Asia/Tokyo" -Xss8m', "'-Duser.country=TR'"):
        with pytest.raises(SettingsError, match=rf"user\.(language|timezone|country) in {own}, which has to be"):
            load_settings(spark_conf={own: options})
    same = "-Duser.timezone=UTC '-Duser.language=en' -Duser.dir=/srv -Xss8m"
    assert load_settings(spark_conf={own: same}).spark_conf == {own: same}


@pytest.mark.parametrize("name", ["spark.master", "spark.remote"])
def test_where_spark_computes_is_said_by_one_setting(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name}, for which there is PLATFORM_{name.replace('.', '_').upper()}"):
        load_settings(spark_conf={name: "spark://host:7077"})


def test_settings_of_spark_that_say_what_is_so_or_change_no_result_are_free() -> None:
    same = {"spark.sql.session.timeZone": "Etc/UTC", "spark.sql.ansi.enabled": True}
    free = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": 8, "spark.hadoop.fs.s3a.key": "k"}
    free |= {"spark.sql.execution.pandas.udf.buffer.size": "1", "spark.sql.analyzer.maxIterations": 200}
    assert load_settings(spark_conf={**same, **free}).spark_conf["spark.sql.shuffle.partitions"] == "8"


def test_a_calendar_that_ends_before_it_begins_names_both_days() -> None:
    with pytest.raises(SettingsError, match="calendar_last 2016-12-31 is before calendar_first 2017-01-01"):
        load_settings(calendar_last="2016-12-31")


def test_a_misspelt_line_of_the_file_is_an_error(project: Path) -> None:
    (project / "platform.toml").write_text("batchdays = 30\n")
    with pytest.raises(SettingsError, match=r"there is no batchdays; did you mean batch_days\?"):
        load_settings()


@pytest.mark.parametrize("content", [b"batch_days = \n", b"\xff\xfe\x00"])
def test_a_file_that_is_no_toml_is_named(content: bytes, project: Path) -> None:
    (project / "platform.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"cannot be read") as caught:
        load_settings()
    assert str(project / "platform.toml") in caught.value.todo


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_file_of_the_state_folder_is_no_file_without_settings(content: bytes, project: Path) -> None:
    """A full disk or a power cut leaves one; what it held, a calendar for example, would be forgotten in silence."""
    (project / ".platform").mkdir(exist_ok=True)
    (project / ".platform" / "settings.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"settings\.toml is empty"):
        load_settings()


def test_secrets_stay_out_of_messages_and_of_the_settings_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_LEDGER_URL", "postgresql://user:geheim@db/ledger")
    assert "geheim" not in repr(load_settings())
    with pytest.raises(SettingsError) as caught:
        load_settings(spark_conf={"spark.hadoop.fs.s3a.secret.key": ["geheim"]})
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://hooks.example.com/t0ken", True),
        ("http://127.0.0.1:8065/t0ken", True),
        ("http://hooks.example.com/t0ken", False),
        ("http://127.0.0.1@hooks.example.com/t0ken", False),
        ("ftp://127.0.0.1/t0ken", False),
        ("http://[t0ken", False),
    ],
)
def test_a_webhook_is_encrypted_or_on_this_machine_and_never_shown(
    address: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_WEBHOOK_URL", address)
    if allowed:
        settings = load_settings()
        assert settings.webhook_url is not None
        assert settings.webhook_url.get_secret_value() == address
        assert "t0ken" not in repr(settings)
        return
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "webhook_url" in caught.value.what
    assert "t0ken" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("file", ["platform.toml", ".platform/settings.toml"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook_url", "https://hooks.example.com/t0ken"),
        ("webhook_secret", "a long t0ken"),
        ("secret", "a long t0ken"),
        ("ui_password", "a long t0ken"),
    ],
)
def test_a_secret_in_a_file_is_refused(name: str, value: str, file: str, project: Path) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(f"{name} = '{value}'\n")
    with pytest.raises(SettingsError, match=f"{name} is in a settings file") as caught:
        load_settings()
    assert f"PLATFORM_{name.upper()}" in caught.value.todo
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("password", ["short t0ken", "a t0ken with a line end\n"])
def test_a_password_that_is_easily_guessed_or_cannot_be_typed_is_refused_and_not_shown(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_UI_PASSWORD", password)
    with pytest.raises(SettingsError, match=r"ui_password.*at least 12 characters") as caught:
        load_settings()
    assert "t0ken" not in "".join(traceback.format_exception(caught.value))


def test_without_a_password_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_UI_PASSWORD", "")
    assert load_settings().ui_password is None
    monkeypatch.setenv("PLATFORM_UI_PASSWORD", "a long t0ken")
    assert "t0ken" not in repr(load_settings())


def test_addresses_of_the_ui_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().ui_origins == ()
    monkeypatch.setenv("PLATFORM_UI_ORIGINS", "https://a.example, http://10.0.0.5:8080,")
    assert load_settings().ui_origins == ("https://a.example", "http://10.0.0.5:8080")


def test_a_secret_under_a_name_that_is_no_settings_is_not_shown(project: Path) -> None:
    (project / "platform.toml").write_text('ledger_ulr = "postgresql://ada:s3cret@host/x"\n')
    with pytest.raises(SettingsError, match="ledger_ulr") as caught:
        load_settings()
    assert "s3cret" not in str(caught.value)
