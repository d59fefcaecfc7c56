"""The one settings object: where things lie, which days exist, how Spark starts.

Values come, strongest first, from arguments, `PLATFORM_…` environment variables, `platform.toml` in the project,
and `settings.toml` in the state folder (written by the demo, so that later commands see the same calendar).
"""

from __future__ import annotations

import os
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from platform_assets.errors import PlatformError


class SettingsError(PlatformError):
    """A setting has a value the platform cannot work with."""


def project_root() -> Path:
    """The folder that holds `workspace.yaml`: the project of an editable install, else the working directory."""
    beside_package = Path(__file__).resolve().parent.parent
    return beside_package if (beside_package / "workspace.yaml").is_file() else Path.cwd()


def _state_root() -> Path:
    return Path(os.environ.get("PLATFORM_STATE", project_root() / ".platform")).absolute()


class Settings(BaseSettings):
    """Everything that can differ between installations."""

    model_config = SettingsConfigDict(env_prefix="PLATFORM_", extra="forbid", frozen=True)

    state: Path = Field(default_factory=_state_root, description="Folder of all state of a default installation.")
    lake: Path = Field(default=Path("lake"), description="Lake root; relative paths are below the state folder.")
    landing: Path = Field(default=Path("landing"), description="Where sources deliver files.")
    jars: Path = Field(default=Path("jars"), description="Folder with Delta's jars, filled on first use.")
    ledger_url: SecretStr = Field(default=SecretStr(""), description="SQLAlchemy URL; empty is SQLite in the state.")
    spark_master: str = Field(default="local[*]", description="Spark master.")
    spark_remote: str | None = Field(default=None, description="Spark Connect URL; wins over the master.")
    spark_driver_memory: str = Field(default="3g", description="Heap of the driver's JVM.")
    spark_conf: dict[str, str] = Field(default_factory=dict, description="Extra Spark configuration.")
    calendar_first: date = Field(default=date(2017, 1, 1), description="First day of every table.")
    calendar_last: date | None = Field(default=date(2018, 1, 1), description="Last day; empty for an open end.")
    today: date | None = Field(default=None, description="Overrides today's date in UTC.")
    settle_s: float = Field(default=2.0, ge=0, description="A file changed less than this long ago is still growing.")
    batch_days: int = Field(default=90, ge=1, description="Most days computed by one Spark job.")
    domains: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("platform_assets.domains.retail",), description="Packages of the domains to load, comma separated."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("domains", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("calendar_last", "today", "spark_remote", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _resolve(self) -> Settings:
        set_ = object.__setattr__
        set_(self, "state", self.state.expanduser().absolute())
        for name in ("lake", "landing", "jars"):
            set_(self, name, self.state / getattr(self, name).expanduser())
        if not self.ledger_url.get_secret_value():
            set_(self, "ledger_url", SecretStr(f"sqlite:///{self.state / 'ledger.db'}"))
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
        files = (project_root() / "platform.toml", _state_root() / "settings.toml")
        return (init_settings, env_settings, *(TomlConfigSettingsSource(settings_cls, file) for file in files))

    def current_day(self) -> date:
        """Today in UTC, or the day the clock was set to."""
        return self.today or datetime.now(UTC).date()

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
        SettingsError: a value is missing, malformed or contradicts another.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'settings'}: {problem['msg']}" for problem in error.errors()
        )
        raise SettingsError(
            f"The settings are not usable: {problems}.",
            "Correct the PLATFORM_… variable or the line in platform.toml.",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"A settings file is not TOML: {error}.",
            f"Correct {project_root() / 'platform.toml'} or {_state_root() / 'settings.toml'}.",
        ) from error
