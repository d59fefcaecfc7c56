"""`withdraw`: take a bad delivery out again."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.console import console, opened_platform, print_json
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.options import AsJson, By, Reason
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.words import counted


def withdraw(
    context: typer.Context,
    arrival: Annotated[str, typer.Argument(help="A file below the landing root, or what entered later of one.")],
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Have every table computed as if an arrival had never come; the next refresh mends exactly its days."""
    author = decided_by(reason, by)
    from platform_assets.engine.late.withdrawals import withdraw as take_back

    with (
        opened_platform() as platform,
        telling(context, "withdraw") as progress,
        session_on_demand(platform.settings, progress) as spark,
    ):
        done = take_back(platform, spark, arrival, author, progress)
    if as_json:
        print_json(
            [
                {"table": withdrawal.table, "rows": withdrawal.rows, "days": sorted(withdrawal.published)}
                for withdrawal in done
            ]
        )
        return
    for withdrawal in done:
        gone, days = counted(withdrawal.rows, "row"), counted(len(withdrawal.published), "day")
        text = f"{gone} of {arrival} taken out of {withdrawal.table}; {days} changed."
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print("The next refresh mends what reads them.")
