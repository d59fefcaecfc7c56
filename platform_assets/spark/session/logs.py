"""Where the JVM's own words go: a file in the state folder, never the screen."""

from __future__ import annotations

from pathlib import Path

from platform_assets.settings import Settings

_ROTATE_AT_BYTES = 20_000_000


def log_file(settings: Settings) -> Path:
    """The file that Spark, its JVM and Ivy append to; what it grew to before is kept beside it once."""
    path = settings.state / "logs" / "spark.log"
    settings.make_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.stat().st_size > _ROTATE_AT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path


def last_words(path: Path, since: int, lines: int = 3) -> str:
    """The last lines written after a position of the file, for an error message."""
    with path.open("rb") as file:
        file.seek(since)
        text = file.read().decode(errors="replace")
    return " | ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())
