"""Read all settings: places, days, Spark, schedules.

Values come, strongest first, from arguments, `PLATFORM_…` environment variables, the project file `platform.toml`,
and `settings.toml` in the state folder (written by the demo, so that later commands see the same calendar).

What the values of settings may be, where that takes more than a type: checked and put in order as they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableVariableError

from platform_assets.places import (
    Access,
    LakeMode,
    Place,
    StateMode,
    folder_of,
    is_private_url,
    one_root,
    origin_of,
    take_folder,
)
from platform_assets.project import (
    PROJECT_FILE,
    installation_root,
    place_of,
    project_folder,
    read_settings_file,
    with_own_paths,
)
from platform_assets.project import SettingsError as SettingsError
from platform_assets.routes import Route
from platform_assets.settings_words import LEAST_SECRET, ONLY_AS_VARIABLES, SHORTEST_PASSWORD, describe, misspelt
from platform_assets.sql_settings import as_text, problems_of


def project_root() -> Path:
    """Return the folder of the project file; without one that of the installation's `workspace.yaml`."""
    return project_folder() or installation_root()


def _state_folder(named: str | Path | None) -> Path:
    """Return the state folder: what was named (below the project, if relative) or the project's own.

    Not relative to the working directory: Dagster's processes and the command line must mean the same folder.
    """
    return Path(one_root(str(project_root() / Path(named or ".platform").expanduser())))


_NOT_FOR_JAVA = re.compile(r'[:"\\\x00-\x1f\x7f]')
"""Where Java takes a folder's name to end, or to hold something else, among its options and in its class path."""


_LINEAGE = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE__TRANSPORT__TYPE")
"""Variables of the OpenLineage client that say where events go."""
_WHERE = {"spark.master": "PLATFORM_SPARK_MASTER", "spark.remote": "PLATFORM_SPARK_REMOTE"}


def java_can_open(folder: Path) -> Path:
    """Return a folder unchanged, if a JVM can use it.

    Raises:
        ValueError: its path has a character that Java takes for something else.
    """
    if found := _NOT_FOR_JAVA.search(str(folder)):
        raise ValueError(
            f"the folder {str(folder)!r} has {found[0]!r} in its path, which Java misreads: name one without"
        )
    return folder


def _no_url(value: object) -> object:
    if isinstance(value, str) and "://" in value:
        raise ValueError("must be a folder of this machine, not a URL")
    if value == "":  # which would be the folder in which it lies by itself
        raise ValueError("must name a folder; without the variable it is the one that there is by itself")
    return value


def _free(value: dict[str, str]) -> dict[str, str]:
    for name, setting in _WHERE.items():
        if name in value:  # it would win, and all that depends on where Spark computes be done for another place
            raise ValueError(f"sets {name}, for which there is {setting}")
    if problems := problems_of(value):
        raise ValueError(f"sets {'; '.join(problems)}, because it changes what days come out as")
    return value


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _encrypted(value: SecretStr | None) -> SecretStr | None:
    if value and not is_private_url(value.get_secret_value()):
        raise ValueError("must be an https:// address, or http:// on this machine")
    return value


def _without_paths(value: tuple[str, ...]) -> tuple[str, ...]:
    given = tuple(filter(None, value))
    for address in given:
        if origin_of(address) is None or address.count("/") > 2:
            raise ValueError(f"{address!r} is not written like https://dagster.example.com, without a path")
    return given


def _can_be_typed(value: SecretStr | None) -> SecretStr | None:
    if value and (len(value.get_secret_value()) < SHORTEST_PASSWORD or not value.get_secret_value().isprintable()):
        raise ValueError(f"must have at least {SHORTEST_PASSWORD} characters, and no line end among them")
    return value


def _of_connect(value: SecretStr | None) -> SecretStr | None:
    if value and not value.get_secret_value().startswith("sc://"):
        raise ValueError("must begin with sc://, as sc://spark.example.com:15002")
    return value


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


EMPTY_IS_NONE = BeforeValidator(_none_if_empty)
"""A variable that is set to nothing says that there is no value."""
Folder = Annotated[Path, BeforeValidator(_no_url)]
"""Of this machine."""
SparkConf = Annotated[dict[str, str], BeforeValidator(as_text), AfterValidator(_free)]
"""Settings of Spark, without those that change results."""
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Separated by commas."""
Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_without_paths)]
"""Addresses of pages, without paths, separated by commas."""
Secret = Annotated[SecretStr | None, EMPTY_IS_NONE]
"""Shown nowhere."""
Remote = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_of_connect)]
"""A Spark Connect server, whose address may hold a token."""
Password = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_can_be_typed)]
"""Long enough, and typed by people."""
Webhook = Annotated[SecretStr | None, EMPTY_IS_NONE, AfterValidator(_encrypted)]
"""An encrypted address, or one on this machine."""


class Settings(BaseSettings):
    """Everything that can differ between installations."""

    model_config = SettingsConfigDict(env_prefix="PLATFORM_", extra="forbid", frozen=True, hide_input_in_errors=True)

    state: Folder = Field(
        default=Path(".platform"),
        description="Folder of all state of a default installation; relative paths are below the project.",
    )
    state_mode: StateMode = Field(default="700", description="Mode of the state folder, as for `chmod`.")
    lake_mode: LakeMode = Field(
        default="", description="Mode of a lake elsewhere, as for `chmod`; `state_mode` if empty."
    )
    lake: Place = Field(
        default="lake",
        description="Lake root: a folder, below the state folder if relative, or a URL, s3://bucket/lake or "
        "abfss://container@account.dfs.core.windows.net/lake.",
    )
    landing: Place = Field(
        default="landing",
        description="Where sources deliver files: a folder, below the state folder if relative, or a URL as of a lake.",
    )
    plans: Folder = Field(
        default=Path("plans"),
        description="Folder of plan files, for Dagster and `backfill new`; relative paths are below the project.",
    )
    jars: Folder = Field(
        default=Path("jars"),
        description="Folder with the jars that Spark needs (Delta's), filled on first use.",
    )
    ledger_url: SecretStr = Field(
        default=SecretStr(""),
        description="SQLAlchemy URL; empty is SQLite in the state.",
    )
    spark_master: str = Field(
        default="local[*]", pattern=r"^(local(-cluster)?(\[.+\])?|yarn|(spark|k8s)://.+)$", description="Spark master."
    )
    spark_remote: Remote = Field(default=None, description="Spark Connect URL; wins over the master.")
    spark_driver_memory: str = Field(
        default="3g", pattern=r"^[1-9]\d*[kmgtKMGT]$", description="Heap of the driver's JVM."
    )
    spark_wait_s: float = Field(
        default=120.0,
        gt=0,
        description="How long YARN may take to answer, and a cluster to give the first executor, in seconds.",
    )
    engine: Literal["spark", "sail"] = Field(
        default="spark", description="What computes silver and gold tables that are admitted to it; Spark the others."
    )
    sail_memory: str = Field(
        default="3g", pattern=r"^[1-9]\d*[kmgtKMGT]$", description="Most memory of the process of Sail."
    )
    warm: bool = Field(
        default=False, description="Whether `up` keeps a Spark ready, which runs and commands then work with."
    )
    warm_idle_s: int = Field(
        default=3600, ge=1, description="A Spark that is kept ready and was not used for so long is ended."
    )
    warm_mib: int = Field(
        default=1024, ge=256, description="A Spark that is kept ready and holds more heap than this is started again."
    )
    spark_conf: SparkConf = Field(
        default_factory=dict,
        repr=False,
        description="Extra Spark configuration, except settings that change results of SQL.",
    )
    calendar_first: date = Field(default=date(2017, 1, 1), description="First day of every table.")
    calendar_last: Annotated[date | None, EMPTY_IS_NONE] = Field(
        default=date(2018, 1, 1), description="Last day; empty for an open end."
    )
    today: Annotated[date | None, EMPTY_IS_NONE] = Field(default=None, description="Overrides today's date in UTC.")
    settle_s: float = Field(
        default=2.0,
        ge=0,
        description="A file changed less than this long ago is still growing.",
    )
    batch_days: int = Field(
        default=90, ge=1, description="Most days computed by one Spark job, unless they have less than `batch_mib`."
    )
    batch_mib: int = Field(default=64, ge=0, description="MiB of input below which a job gets more days.")
    part_mib: float = Field(
        default=16,
        ge=0.01,
        allow_inf_nan=False,
        description="MiB of a day, as files, that one task computes and one file holds.",
    )
    file_mib: int = Field(default=4096, ge=1, description="Most MiB of a delivered file.")
    file_rows: int = Field(default=50_000_000, ge=1, description="Most rows of a delivered file.")
    file_columns: int = Field(default=2000, ge=1, le=20_000, description="Most columns of a delivered file.")
    file_nesting: int = Field(default=32, ge=1, le=100, description="How deep fields of a Parquet file may be nested.")
    line_mib: int = Field(default=16, ge=1, le=16, description="Most MiB of a line, or of a row of Parquet.")
    copy_deliveries: bool = Field(
        default=False, description="Whether Spark reads copies of delivered files, safe from replacement."
    )
    unpacked_ratio: int = Field(
        default=200, ge=1, description="How many times as long as a file its content may be, beyond 64 MiB."
    )
    domains: Names = Field(
        default=("platform_assets.domains.retail",),
        description="Packages of the domains to load, comma separated.",
    )
    files_per_run: int = Field(
        default=5000, ge=1, description="Most files one automatic refresh takes, oldest arrival dates first."
    )
    daily_cron: str = Field(default="0 1 * * *", description="When the daily refresh runs, in UTC.")
    deep_restatement_cron: str = Field(
        default="0 3 1 * *", description="When the deep restatement takes late rows, in UTC."
    )
    rollback_window_days: int = Field(
        default=90, ge=1, description="How long releases can be read and rolled back to; pinned ones for longer."
    )
    stage_safe_days: int = Field(
        default=7, ge=1, description="A stage that was not written to for so long, and has no process, is removed."
    )
    compaction_files: int = Field(default=8, ge=1, description="Days with more small files than this are compacted.")
    reconcile_cron: str = Field(default="0 5 * * *", description="When declared comparisons run, in UTC.")
    maintenance_cron: str = Field(default="0 4 * * 0", description="When maintenance runs, in UTC.")
    ui_url: str = Field(
        default="http://127.0.0.1:3000", pattern=r"^https?://\S+$", description="Dagster's UI, for links to it."
    )
    ui_origins: Origins = Field(
        default=(),
        description="More addresses of the UI of `up`, besides `ui_url` and this machine, comma separated.",
    )
    ui_password: Password = Field(
        default=None, description="Password of the UI of `up`; only as a PLATFORM_… variable."
    )
    webhook_url: Webhook = Field(default=None, description="Address for announcements; only as a PLATFORM_… variable.")
    notify: dict[str, Route] = Field(
        default_factory=dict, description="Routes of announcements to chats, mail and pagers, by name."
    )
    webhook_secret: Secret = Field(
        default=None, description="Signs messages to the webhook; only as a PLATFORM_… variable."
    )
    secret: Secret = Field(
        default=None,
        min_length=LEAST_SECRET,
        description="Key of masked values and of remembered erasures; only as a PLATFORM_… variable.",
    )
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = Field(
        default="WARN", description="How much Spark writes to logs/spark.log of the state folder."
    )

    @field_validator("state", mode="before")
    @classmethod
    def _empty_is_the_default(cls, value: object) -> object:
        return value or ".platform"

    @field_validator("ui_url")
    @classmethod
    def _without_last_slash(cls, value: str) -> str:
        return value.rstrip("/")

    @model_validator(mode="after")
    def _resolve(self) -> Settings:
        set_ = object.__setattr__
        set_(self, "state", java_can_open(_state_folder(self.state)))
        set_(self, "jars", java_can_open(self.state / self.jars.expanduser()))
        for name in ("lake", "landing"):
            if folder := folder_of(getattr(self, name)):
                set_(self, name, one_root(str(self.state / folder.expanduser())))
        set_(self, "plans", project_root() / self.plans.expanduser())
        if not self.ledger_url.get_secret_value():
            set_(self, "ledger_url", SecretStr(f"sqlite:///{quote(str(self.state / 'ledger.db'))}"))
        folder = folder_of(self.lake)
        if self.access.lake_is_wider and folder and folder.is_relative_to(self.state):
            raise ValueError(
                f"lake_mode {self.lake_mode} lets others into {self.lake}, which lies in the state folder, where "
                f"state_mode {self.state_mode} does not: name a folder elsewhere in lake"
            )
        if self.calendar_last is not None and self.calendar_last < self.calendar_first:
            raise ValueError(f"calendar_last {self.calendar_last} is before calendar_first {self.calendar_first}")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, environment, the project file, the state folder's file."""
        own = project_root() / PROJECT_FILE
        project = read_settings_file(own)
        variables = {name: value for name, value in env_settings().items() if (name, value) != ("state", "")}
        named = (source.get("state") for source in (init_settings(), variables, project))
        state = _state_folder(next((one for one in named if one and isinstance(one, str | Path)), None))
        file = state / "settings.toml"
        if file.is_file() and not file.read_bytes().strip():
            raise SettingsError(
                f"{file} is empty: a full disk or a power cut may have taken its settings.",
                "Write them again, or remove the file if you want the defaults.",
            )
        kept = read_settings_file(file)
        for name in sorted(ONLY_AS_VARIABLES.keys() & {*project, *kept}):
            raise SettingsError(
                f"{name} is in a settings file, {own if name in project else file}; anyone who can read it could "
                f"{ONLY_AS_VARIABLES[name]}.",
                f"Remove it there and set the variable PLATFORM_{name.upper()} instead.",
            )
        others = (variables, with_own_paths(project, own.parent), kept)
        return init_settings, *(InitSettingsSource(settings_cls, values) for values in others)

    @property
    def lake_folder(self) -> Path:
        """The lake's folder, for what works with nothing but a folder of this machine."""
        return self._folder("lake", self.lake)

    @property
    def landing_folder(self) -> Path:
        """The landing area's folder, for what works with nothing but a folder of this machine."""
        return self._folder("landing", self.landing)

    def _folder(self, name: str, place: str) -> Path:
        if folder := folder_of(place):
            return folder
        raise SettingsError(
            f"{name} is {place}, and this needs a folder of this machine.",
            f"Name one in PLATFORM_{name.upper()}, or do without.",
        )

    def current_day(self) -> date:
        """Today in UTC, or the day the clock was set to."""
        return self.today or datetime.now(UTC).date()

    @property
    def lineage_file(self) -> Path | None:
        """Return the configuration of the OpenLineage client in the project's folder; None without one."""
        file = project_root() / "openlineage.yml"
        return file if file.is_file() else None

    @property
    def sends_lineage(self) -> bool:
        """Return whether the OpenLineage client is configured, by variables or by a file of the project."""
        if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
            return False
        return bool(self.lineage_file) or any(map(os.environ.get, _LINEAGE))

    @property
    def access(self) -> Access:
        """Return who may look into what the platform writes."""
        return Access.of(self.state_mode, self.lake_mode)

    def make_state(self) -> None:
        """Make the state folder with its mode. A failure shows when something is written there."""
        with suppress(OSError):
            take_folder(self.state, self.access.state, folder_of(self.landing))

    @property
    def batch_bytes(self) -> int:
        """Return what should be read for a batch before it ends."""
        return self.batch_mib * 1024 * 1024

    @property
    def part_bytes(self) -> int:
        """Return the bytes of a day that one task computes and one file holds."""
        return max(int(self.part_mib * 1024 * 1024), 1)

    def last_day(self) -> date:
        """Return the newest day that can exist: today, or the calendar's last day if that is earlier."""
        today = self.current_day()
        return min(today, self.calendar_last) if self.calendar_last else today

    def calendar(self) -> tuple[date, ...]:
        """Return every day from the calendar's first to its newest, oldest first."""
        count = (self.last_day() - self.calendar_first).days + 1
        return tuple(self.calendar_first + timedelta(days=n) for n in range(max(count, 0)))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value is missing, malformed or contradicts another, or its variable is misspelt; the message
            names it.
    """
    fields = Settings.model_fields
    if slip := misspelt(os.environ, fields):
        raise SettingsError(f"There is no setting {slip[0]}.", f"Did you mean {slip[1]}? Correct the variable.")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(_described(problem, overrides) for problem in error.errors())
        raise SettingsError(
            f"The settings are not usable: {problems}.",
            "Correct the PLATFORM_… variable, or the line in platform.toml or in settings.toml of the state folder.",
        ) from error
    except UnreadableVariableError as error:
        raise SettingsError(
            f"The settings are not usable: {error}{f': {error.__cause__}' if error.__cause__ else ''}.",
            "Correct the PLATFORM_… variable of that field; several values are written as JSON, "
            'as {"spark.executor.memory": "4g"}.',
        ) from error


def _described(problem: ErrorDetails, overrides: Mapping[str, object]) -> str:
    field = str(problem["loc"][0]) if problem["loc"] else ""
    place = place_of(field, project_root(), os.environ) if field and field not in overrides else None
    return f"{describe(problem, Settings.model_fields)}{f' (in {place})' if place else ''}"
