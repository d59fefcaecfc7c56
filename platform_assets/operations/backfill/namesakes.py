"""Two plan files of one name: what one began, the other does not go on with as if it had been edited."""

from __future__ import annotations

from pathlib import Path

from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backfill.files import read_plan
from platform_assets.operations.backfill.plan_text import PlanFileError
from platform_assets.operations.plan_record import OVER, BackfillRecord, find_record
from platform_assets.planning.backfill.plan_file import PlanFile


def refuse_namesake(lake: Lake, file: PlanFile, place: Path) -> None:
    """A plan that is not over belongs to the file that began it, as long as that is there and says something else.

    A file that was edited, renamed or moved is the same plan; so is a copy that says the same.

    Args:
        lake: whose plans are meant.
        file: the plan.
        place: where it was read.

    Raises:
        PlanFileError: another file began a plan of this name.
        RecordError: what became of that plan cannot be read.
    """
    record = find_record(lake, file.name)
    if record is not None and (other := began_by_another(record, file, place)):
        raise PlanFileError(
            f"Two files call their plan {file.name}: {other}, which began it (it is {record.state}), and "
            f"{place.resolve()}, which says something else.",
            f"Give one of the two plans another `name`; if {place} is to take its place, remove the other file, or "
            f"`platform-assets plan cancel {file.name}` first.",
        )


def began_by_another(record: BackfillRecord, file: PlanFile, place: Path) -> Path | None:
    """The file that began a plan which is not over, if it is another one and still says another plan of this name."""
    if record.state in OVER or not record.place or record.file == file:
        return None
    other = Path(record.place)
    return other if other != place.resolve() and _is_another(other, file) else None


def said_besides(record: BackfillRecord, file: PlanFile, place: Path) -> str:
    """That a file says another plan than the one of its name that was begun, as a sentence; empty where it does not."""
    if record.file == file:
        return ""
    begun = f"the plan of this name that {record.place or 'a file'} began ({record.came_to})"
    return f"{place} says something else than {begun}. `platform-assets plan explain {place}` shows what."


def _is_another(other: Path, file: PlanFile) -> bool:
    try:
        said = read_plan(other)
    except PlanFileError:  # it is gone, or no plan any more
        return False
    return said.name == file.name and said != file
