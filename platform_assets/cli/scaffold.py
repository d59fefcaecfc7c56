"""Write what `init --from` proposes: contracts, transforms and a test of each table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Column

if TYPE_CHECKING:
    from platform_assets.sources.inference import Proposal

TEMPLATE = Path(__file__).parent / "template"
_FOUND = Path(__file__).parent / "template_found"
"""What takes the place of the template's orders for files that were looked at."""
_ENDING = ".txt"
"""Ending of files in the templates, so that they are no modules."""
_OF_PYTHON, _OF_SQL = ("silver.py", "gold.py"), ".sql"
"""What they have of either language alone."""
_NAME = re.compile(r"(?<![a-z@])example(?![a-z])")
"""The placeholder for the domain; not the one in an address at example.com."""
_OF_ORDERS = re.compile(r"example/(contracts|sample|tests|transforms/(silver|gold))")
_CALENDAR = ("2024-03-01", "2024-03-05")
_WINDOW_DAYS = 90
"""That a contract takes unasked by default."""


def project_files(domain: str, found: Proposal | None, origin: str, *, sql: bool) -> Iterator[tuple[str, str]]:
    """Yield the files of a new project by their paths: with orders to learn with, or as proposed for files.

    Args:
        domain: its name, and in what is proposed also that of its tables.
        origin: the names of the files.
        sql: whether tables are queries.
    """
    values = _values(found, domain, origin) if found else {}
    for source in sorted(path for path in (*TEMPLATE.rglob("*"), *_FOUND.rglob("*")) if path.is_file()):
        is_found = source.is_relative_to(_FOUND)
        name = str(source.relative_to(_FOUND if is_found else TEMPLATE)).removesuffix(_ENDING)
        if name.endswith(_OF_PYTHON if sql else _OF_SQL):
            continue
        text = source.read_text(encoding="utf-8")
        if is_found and found:
            yield f"{domain}/{name.replace('NAME', domain)}", Template(text).substitute(values)
        elif not is_found and not (found and _OF_ORDERS.match(name)):
            for day, other in zip(_CALENDAR, found.days if found else (), strict=False):
                text = text.replace(day, str(other))
            yield _NAME.sub(domain, name), _NAME.sub(domain, text)


def _values(found: Proposal, domain: str, origin: str) -> dict[str, str]:
    """Return what stands for the placeholders of the template."""
    summed = [
        Column(column.name, f"decimal(28,{column.digits[1]})", f"Sum of {column.name}.")
        for column in found.columns
        if column.digits and column.additive and column.name != "row_count"
    ]
    total: dict[str, str | None] = {"row_count": str(len(found.typed))}
    for name in (column.name for column in summed):
        values = [Decimal(value) for row in found.typed if (value := row[name]) is not None]
        total[name] = str(sum(values)) if values else None
    back = (found.days[1] - found.days[0]).days
    # Else the first rows of a file with all history would wait in the late queue.
    window = {"restatement_window_days": back + _WINDOW_DAYS} if back > _WINDOW_DAYS else {}
    stated = {what: value for what, value in found.chosen.items() if value is not None} | window
    keys = [{name: row[name] for name in found.chosen["key"]} for row in found.typed]
    return {
        "name": domain,
        "origin": origin,
        "rows": f"{found.rows:,}",
        "csv": ", Csv" if found.chosen["source"].csv else "",
        "columns": _declared({column.name: in_python(column) for column in found.columns}, found.notes),
        "fields": _declared({what: f"{what}={in_python(value)}" for what, value in stated.items()}, found.notes),
        "key": in_python(found.chosen["key"]),
        "sums": "".join(f"\n        {in_python(column)}," for column in summed),
        "python_sums": "".join(f'\n        F.sum("{c.name}").cast("{c.type}").alias("{c.name}"),' for c in summed),
        "sql_sums": "".join(f",\n    CAST(sum(`{c.name}`) AS {c.type}) AS `{c.name}`" for c in summed),
        "day": str(found.day),
        "given": _yaml(found.given),
        "keys": _yaml(keys),
        "typed": _yaml(found.typed),
        "summed": _yaml([total]),
    }


def _declared(parts: Mapping[str, str], notes: Mapping[str, tuple[str, str]]) -> str:
    """Return declarations on lines of their own, each below what speaks for it."""
    lines = ((f"    # {': '.join(notes[name])}\n" if name in notes else "") + f"    {parts[name]}," for name in parts)
    return "\n".join(lines)


def _yaml(rows: Iterable[Mapping[str, str | None]]) -> str:
    return "\n".join(f"      - {json.dumps(row, ensure_ascii=False)}" for row in rows)


def in_python(value: Any) -> str:
    """Return a declaration as Python has it, without what is by default."""
    if isinstance(value, tuple):
        return f"({', '.join(map(in_python, value))}{',' if len(value) == 1 else ''})"
    if not is_dataclass(value):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    parts = []
    for each in fields(value):
        here = getattr(value, each.name)
        is_first = each.name in ("name", "type", "description", "folder")
        if is_first or here != each.default:
            parts.append(in_python(here) if is_first else f"{each.name}={in_python(here)}")
    return f"{type(value).__name__}({', '.join(parts)})"
