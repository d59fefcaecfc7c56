"""What the catalogue says of a table before anything is computed, from its contract."""

from __future__ import annotations

from dagster._core.definitions.utils import is_valid_owner

from platform_assets.contracts import AllHistory, AsOf, Contract, MonthToDate, Offsets, Span, Window
from platform_assets.visible import visible

_RULES = {
    "quarantine": "Rows are set aside",
    "block": "A day is not published",
    "warn": "A day is published with a warning",
}


def describe_table(contract: Contract) -> str:
    """The contract's words, then its key, what a day reads, and how to see its rows, as Markdown."""
    per = " and ".join(filter(None, ("day", ", ".join(contract.key))))
    lines = [contract.description, "", f"- One row per {per}."]
    if contract.source is not None:
        lines.append(f"- Delivered as files in `{contract.source.folder}`, which are taken by themselves.")
    for read in contract.inputs:
        lines.append(f"- A day reads {read.table}: {describe_window(read.window)}.")
    for rule in contract.rules:
        lines.append(f"- {_RULES[rule.severity]} unless `{rule.name}` (`{rule.kind.text}`): {rule.description}")
        if rule.allowed is not None and rule.tolerance:
            refused = "; with more the day is not published" if rule.quarantines else ""
            lines[-1] += f" At most {rule.allowed} may break it{refused}."
    lines += ["", f"See rows: `platform-assets read {contract.name} --day DAY`; what a day was made from: "]
    lines[-1] += f"`platform-assets why {contract.name} DAY`"
    lines += ["", "Days that a command published are among the events here; *Runs* has only what Dagster started."]
    return visible("\n".join(lines), breaks=True)


def shown_owners(owner: str) -> list[str]:
    """Who answers for something: Dagster takes addresses of mail and teams, so that any other name is a team's."""
    named = owner.strip()
    return [named if is_valid_owner(named) else f"team:{named}"] if named.removeprefix("team:") else []


def describe_window(window: Window) -> str:
    """The days of an input that one day reads, in words."""
    match window:
        case Span(before=0, after=0):
            return "the same day"
        case Span(before=before, after=0):
            return f"the same day and the {before} before it"
        case Span(before=before, after=after):
            return f"the same day, the {before} before it and the {after} after it"
        case Offsets(each, unit):
            return f"the days {', '.join(f'{n:+}' for n in each)} {unit} from it"
        case MonthToDate():
            return "from the first of the month to the day"
        case AsOf():
            return "what was valid on the day"
        case AllHistory():
            return "all days up to it"
