"""`release`: one release, what differs between two, and which ones are pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.commands.release_view import diff_json, pin_json, print_diff, print_release, release_json
from platform_assets.cli.console import console, opened_platform, print_json, selected, without_numpy
from platform_assets.cli.options import AsJson, By, Days, OneTable, Reason, decided_by
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.releases import release as release_of

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.operations.pins import Pin

app = typer.Typer(help="What a release shows, what differs between two, and pins.", no_args_is_help=True)

_NAMED = "Its number, the name of its pin, or a publication"
Limit = Annotated[int, typer.Option(min=1, help="Most days to list one by one.")]
Which = Annotated[str, typer.Argument(help=f"{_NAMED}.")]
WhichOrNow = Annotated[str | None, typer.Argument(help=f"{_NAMED}; the current one by default.")]


@app.command()
def show(which: WhichOrNow = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show what a release changed, in rows and amounts, why and by whom, and the version of every table it shows."""
    from platform_assets.operations.lineage.amount_changes import changed_amounts, changed_days
    from platform_assets.operations.pins import pinned_releases

    with opened_platform() as platform, without_numpy():
        release = _chosen(platform, which)
        if release.number < 0:
            if as_json:
                print_json(None)
            else:
                console.print("Nothing was published yet.")
            return
        before = release_of(platform.lake, release.number - 1) if release.number else Release()
        changes = changed_days(platform, before, release)
        amounts = changed_amounts(platform, before, release, changes)
        made = platform.ledger.publication(
            next(name for name, number in platform.ledger.indexed().items() if number == release.number)
        )
        assert made is not None
        is_current = release.number == current_release(platform.lake).number
        pin = pinned_releases(platform, as_far_as_readable=True).get(release.number)
        paths = {table: str(platform.lake.table_path(table)) for table in release.versions}
    if as_json:
        print_json(release_json(release, made, changes, amounts, pin, paths, is_current=is_current))
    else:
        print_release(release, made, changes, amounts, pin, limit, is_current=is_current)


@app.command()
def diff(
    before: Which,
    after: WhichOrNow = None,
    table: OneTable = None,
    days: Days = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Show which days differ between two releases, in rows and amounts, and which publications made the difference."""
    from platform_assets.operations.lineage.amount_changes import changed_amounts, changed_days

    with opened_platform() as platform, without_numpy():
        old, new = _chosen(platform, before), _chosen(platform, after)
        changes = changed_days(platform, old, new, selected(table, days, platform.settings))
        amounts = changed_amounts(platform, old, new, changes)
        shown = {number for change in changes for number in change.releases}
        names = {number: name for name, number in platform.ledger.indexed().items() if number in shown}
        heads = [head for number in sorted(shown) if (head := platform.ledger.head(names[number]))]
    if as_json:
        print_json(diff_json(old, new, changes, amounts, heads))
    else:
        print_diff(old, new, changes, amounts, heads, limit)


@app.command()
def pin(
    which: Which,
    reason: Reason = None,
    by: By = None,
    name: Annotated[str | None, typer.Option(help="A name by which it can be read, too.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a release readable, whatever maintenance would delete, until it is unpinned."""
    author = decided_by(reason, by)
    from platform_assets.operations.pins import pin as keep

    with opened_platform() as platform:
        done = keep(platform, _chosen(platform, which).number, author, name)
    named = f" as {done.name}" if done.name else ""
    _say(done, f"Release {done.release} is pinned{named}: it stays readable until it is unpinned.", as_json)


@app.command()
def unpin(which: Which, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Let maintenance delete what only this release needs, once it is old enough."""
    author = decided_by(reason, by)
    from platform_assets.operations.pins import release_number
    from platform_assets.operations.pins import unpin as let_go

    with opened_platform() as platform:
        done = let_go(platform, release_number(platform.ledger, which), author)
    _say(done, f"Release {done.release} is no longer pinned.", as_json)


def _chosen(platform: Platform, which: str | None) -> Release:
    """Whether or not its files are still kept: what it was, the ledger knows for ever."""
    from platform_assets.operations.pins import release_number

    if which is None:
        return current_release(platform.lake)
    return release_of(platform.lake, release_number(platform.ledger, which))


def _say(done: Pin, text: str, as_json: bool) -> None:
    if as_json:
        print_json(pin_json(done))
    else:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
