"""The one settings object: where things lie, which days exist, how Spark starts.

Values come, strongest first, from arguments, `PLATFORM_…` environment variables, `platform.toml` in the project,
and `settings.toml` in the state folder (written by the demo, so that later commands see the same calendar).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as UnreadableVariableError

from platform_assets.errors import PlatformError
from platform_assets.sql_settings import problems_of


class SettingsError(PlatformError):
    """A setting has a value the platform cannot work with."""


def project_root() -> Path:
    """The folder that holds `workspace.yaml`: the project of an editable install, else the working directory."""
    beside_package = Path(__file__).resolve().parent.parent
    return beside_package if (beside_package / "workspace.yaml").is_file() else Path.cwd()


def _state_folder(named: str | Path | None) -> Path:
    """The state folder: what was named (below the project, if relative) or the project's own.

    Not relative to the working directory: Dagster's processes and the command line must mean the same folder.
    """
    return project_root() / Path(named or ".platform").expanduser()


_MAY_HOLD_SECRETS = {"ledger_url", "secret", "spark_conf", "spark_remote", "webhook_url"}
LEAST_SECRET = 32
"""Characters of a secret; a shorter one could be found by trying."""
_NEARLY = 0.85
"""How alike a variable is to a setting's to be taken for a slip; those of other tools are none of ours."""
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Settings(BaseSettings):
    """Everything that can differ between installations."""

    model_config = SettingsConfigDict(env_prefix="PLATFORM_", extra="forbid", frozen=True, hide_input_in_errors=True)

    state: Path = Field(
        default=Path(".platform"),
        description="Folder of all state of a default installation; relative paths are below the project.",
    )
    lake: Path = Field(
        default=Path("lake"),
        description="Lake root; relative paths are below the state folder.",
    )
    landing: Path = Field(default=Path("landing"), description="Where sources deliver files.")
    jars: Path = Field(
        default=Path("jars"),
        description="Folder with Delta's jars, filled on first use.",
    )
    ledger_url: SecretStr = Field(
        default=SecretStr(""),
        description="SQLAlchemy URL; empty is SQLite in the state.",
    )
    spark_master: str = Field(
        default="local[*]", pattern=r"^(local(-cluster)?(\[.+\])?|yarn|(spark|k8s)://.+)$", description="Spark master."
    )
    spark_remote: str | None = Field(default=None, description="Spark Connect URL; wins over the master.")
    spark_driver_memory: str = Field(
        default="3g", pattern=r"^[1-9]\d*[kmgtKMGT]$", description="Heap of the driver's JVM."
    )
    spark_conf: dict[str, str] = Field(
        default_factory=dict, description="Extra Spark configuration, but for what changes the results of SQL."
    )
    calendar_first: date = Field(default=date(2017, 1, 1), description="First day of every table.")
    calendar_last: date | None = Field(default=date(2018, 1, 1), description="Last day; empty for an open end.")
    today: date | None = Field(default=None, description="Overrides today's date in UTC.")
    settle_s: float = Field(
        default=2.0,
        ge=0,
        description="A file changed less than this long ago is still growing.",
    )
    batch_days: int = Field(
        default=90, ge=1, description="Most days computed by one Spark job, unless they have less than `batch_mib`."
    )
    batch_mib: int = Field(default=64, ge=0, description="MiB to be read for which more days are not worth a job.")
    gzip_ratio: int = Field(
        default=200, ge=1, description="How many times as long as a gzip file its content may be, beyond 64 MiB."
    )
    domains: Annotated[tuple[str, ...], NoDecode] = Field(
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
    maintenance_cron: str = Field(default="0 4 * * 0", description="When maintenance runs, in UTC.")
    ui_url: str = Field(
        default="http://127.0.0.1:3000", pattern=r"^https?://\S+$", description="Dagster's UI, for links to it."
    )
    webhook_url: SecretStr | None = Field(
        default=None, description="Told of failed and held days; only as a PLATFORM_… variable."
    )
    secret: SecretStr | None = Field(
        default=None,
        min_length=LEAST_SECRET,
        description="Key of masked values and of remembered erasures; only as a PLATFORM_… variable.",
    )
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = Field(
        default="WARN", description="How much Spark writes to logs/spark.log of the state folder."
    )

    @field_validator("state", "lake", "landing", "jars", mode="before")
    @classmethod
    def _folder(cls, value: object) -> object:
        if isinstance(value, str) and "://" in value:
            raise ValueError("must be a folder of this machine, not a URL")
        return value

    @field_validator("state", mode="before")
    @classmethod
    def _empty_is_the_default(cls, value: object) -> object:
        return value or ".platform"

    @field_validator("spark_conf", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {
            name: str(item).lower() if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
            for name, item in value.items()
        }

    @field_validator("spark_conf")
    @classmethod
    def _free(cls, value: dict[str, str]) -> dict[str, str]:
        if problems := problems_of(value):
            raise ValueError(f"sets {'; '.join(problems)}, because it changes what days come out as")
        return value

    @field_validator("domains", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("webhook_url")
    @classmethod
    def _encrypted(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value.get_secret_value())
            allowed = parts.hostname and (
                parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
            )
        except ValueError:
            allowed = False
        if not allowed:
            raise ValueError("must be an https:// address, or http:// on this machine")
        return value

    @field_validator("ui_url")
    @classmethod
    def _without_last_slash(cls, value: str) -> str:
        return value.rstrip("/")

    @field_validator("calendar_last", "today", "spark_remote", "webhook_url", "secret", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _resolve(self) -> Settings:
        set_ = object.__setattr__
        set_(self, "state", _state_folder(self.state))
        for name in ("lake", "landing", "jars"):
            set_(self, name, self.state / getattr(self, name).expanduser())
        if not self.ledger_url.get_secret_value():
            set_(self, "ledger_url", SecretStr(f"sqlite:///{quote(str(self.state / 'ledger.db'))}"))
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
        """Arguments, environment, the project's file, the state folder's file."""
        project = TomlConfigSettingsSource(settings_cls, project_root() / "platform.toml")
        named = (source().get("state") for source in (init_settings, env_settings, project))
        state = _state_folder(next(filter(None, named), None))
        file = state / "settings.toml"
        if file.is_file() and not file.read_bytes().strip():
            raise SettingsError(
                f"{file} is empty: a full disk or a power cut may have taken its settings.",
                "Write them again, or remove the file if you want the defaults.",
            )
        kept = TomlConfigSettingsSource(settings_cls, file)
        in_files = {*project(), *kept()}
        for name, harm in (("webhook_url", "write to that address"), ("secret", "guess masked values")):
            if name in in_files:
                raise SettingsError(
                    f"{name} is in a settings file; whoever can read it could {harm}.",
                    f"Remove it there and set the variable PLATFORM_{name.upper()} instead.",
                )
        return init_settings, env_settings, project, kept

    def current_day(self) -> date:
        """Today in UTC, or the day the clock was set to."""
        return self.today or datetime.now(UTC).date()

    @property
    def batch_bytes(self) -> int:
        """What should be read for a batch before it ends."""
        return self.batch_mib * 1024 * 1024

    def last_day(self) -> date:
        """The newest day that can exist: today, or the calendar's last day if that is earlier."""
        today = self.current_day()
        return min(today, self.calendar_last) if self.calendar_last else today

    def calendar(self) -> tuple[date, ...]:
        """Every day from the calendar's first to its newest, oldest first."""
        count = (self.last_day() - self.calendar_first).days + 1
        return tuple(self.calendar_first + timedelta(days=n) for n in range(max(count, 0)))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value is missing, malformed or contradicts another, or its variable is misspelt; the message
            names it.
    """
    _refuse_misspelt()
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(_describe(problem) for problem in error.errors())
        raise SettingsError(
            f"The settings are not usable: {problems}.",
            "Correct the PLATFORM_… variable, or the line in platform.toml or in settings.toml of the state folder.",
        ) from error
    except UnreadableVariableError as error:
        raise SettingsError(
            f"The settings are not usable: {error}.",
            "Correct the PLATFORM_… variable of that field; several values are written as JSON.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(
            f"A settings file cannot be read: {error}.",
            f"Correct {project_root() / 'platform.toml'}, or settings.toml in the state folder.",
        ) from error


def _refuse_misspelt() -> None:
    """A variable that is nearly a setting's: whoever wrote it would wait in vain for what it does."""
    for variable in os.environ:
        name = variable.removeprefix("PLATFORM_").lower()
        if not variable.startswith("PLATFORM_") or name in Settings.model_fields:
            continue
        if close := get_close_matches(name, Settings.model_fields, 1, _NEARLY):
            raise SettingsError(
                f"There is no setting {variable}.", f"Did you mean PLATFORM_{close[0].upper()}? Correct the variable."
            )


def _describe(problem: ErrorDetails) -> str:
    """One problem: the field, what is expected, and what came unless that may hold a secret."""
    field = str(problem["loc"][0]) if problem["loc"] else ""
    name = ".".join(map(str, problem["loc"])) or "settings"
    shown = "" if field in {"", *_MAY_HOLD_SECRETS} else f" (got {str(problem['input'])[:80]!r})"
    return f"{name}: {problem['msg']}{shown}"
