"""Whether this machine can start Spark, answered without starting it."""

from __future__ import annotations

from dataclasses import dataclass

from platform_assets.settings import Settings
from platform_assets.spark.session.class_archive import archive_path, is_as_recorded
from platform_assets.spark.session.jars import NEEDED, faults
from platform_assets.spark.session.java import Java, JavaError, find_java


@dataclass(frozen=True)
class Finding:
    """What a look at one thing brought.

    Args:
        name: what was looked at.
        ok: False if something has to be done before the platform works.
        message: what was found.
        todo: what to do, empty if nothing.
    """

    name: str
    ok: bool
    message: str
    todo: str = ""


def check_spark(settings: Settings) -> tuple[Finding, ...]:
    """Java, Delta's jars and the class archive, in that order; with Spark Connect the server has all of them."""
    if settings.spark_remote:
        return (Finding("Spark", True, "Spark Connect: Java and jars are the server's."),)
    java = _java()
    if isinstance(java, Finding):
        return java, check_jars(settings)
    finding = Finding("Java", True, f"Java {java.version} at {java.executable}.")
    return finding, check_jars(settings), check_class_archive(settings, java)


def _java() -> Java | Finding:
    try:
        return find_java()
    except JavaError as error:
        return Finding("Java", False, error.what, error.todo)


def check_jars(settings: Settings) -> Finding:
    """Delta's jars: none yet is fine, a damaged one is replaced at the next start, which then needs the network."""
    if not any((settings.jars / jar.file).exists() for jar in NEEDED):
        return Finding("Delta jars", True, f"Not there yet; the first start brings them to {settings.jars}.")
    problems = faults(settings.jars)
    if problems:
        return Finding(
            "Delta jars", False, f"{'; '.join(problems)}.", "Start anything that uses Spark with the network at hand."
        )
    return Finding("Delta jars", True, f"{len(NEEDED)} files in {settings.jars}, as released.")


def check_class_archive(settings: Settings, java: Java) -> Finding:
    """The class archive, which only makes starts faster."""
    file = archive_path(settings, java)
    if not file.is_file():
        return Finding("Class archive", True, "Not there yet; the first session records it for the later ones.")
    if not is_as_recorded(file):
        return Finding(
            "Class archive",
            True,
            f"{file} is not as it was recorded and is not used; the next session records it anew.",
        )
    return Finding("Class archive", True, f"{file.stat().st_size / 1e6:.0f} MB at {file}.")
