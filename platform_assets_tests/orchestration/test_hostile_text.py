"""Names, values and reasons that would act on a page or a terminal: all events of runs show them, and they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date

import dagster as dg
import pytest
from dagster._core.events.log import EventLogEntry
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster_shared.error import SerializableErrorInfo

from platform_assets.engine.platform import Author
from platform_assets.orchestration.assets.events import describe_table
from platform_assets.orchestration.automation.announcements import FailedRun, Present, announcements
from platform_assets.orchestration.build import build_definitions, materialize_range, run_job
from platform_assets.records.outbox import Announced
from platform_assets_tests.support.history import TWO_GOLDS
from platform_assets_tests.support.hostile import HOSTILE, SHOWN, faults, faults_of_markdown
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SILVER, hold_a_correction, land, refresh_on_paper
from platform_assets_tests.support.world import MakeWorld, World, product, sale


def texts(entry: EventLogEntry) -> Iterator[tuple[bool, str]]:
    """What Dagster shows of an event, and whether it shows it as Markdown."""
    yield False, entry.user_message
    event = entry.dagster_event
    if event is None:
        return
    yield False, event.message or ""
    data = event.event_specific_data
    for error in _errors(getattr(data, "error", None)):
        yield False, error.message
    told = getattr(data, "user_failure_data", None)
    for shown in (data, getattr(data, "materialization", None), told):
        yield False, getattr(shown, "description", None) or ""
        yield from _metadata(getattr(shown, "metadata", None) or {})


def _errors(error: SerializableErrorInfo | None) -> Iterator[SerializableErrorInfo]:
    while error is not None:
        yield error
        error = error.cause


def _metadata(metadata: Mapping[str, dg.MetadataValue]) -> Iterator[tuple[bool, str]]:
    for value in metadata.values():
        match value:
            case dg.TextMetadataValue(text=text):
                yield False, text or ""
            case dg.MarkdownMetadataValue(md_str=text):
                yield True, text or ""
            case dg.TableMetadataValue(records=records):
                yield from ((False, f"{cell}") for record in records for cell in record.data.values())


def looked_at(instance: dg.DagsterInstance) -> tuple[list[str], set[bool]]:
    """What is wrong with the events of an instance, and whether hostile text was in Markdown and in plain text."""
    wrong: list[str] = []
    ways: set[bool] = set()
    for run in (RUNLESS_RUN_ID, *(run.run_id for run in instance.get_runs())):
        for entry in instance.all_logs(run):
            for is_markdown, text in texts(entry):
                wrong += (faults_of_markdown if is_markdown else faults)(text)
                if SHOWN in text:
                    ways.add(is_markdown)
    return wrong, ways


@pytest.mark.proof
def test_nothing_of_what_was_published_or_held_at_a_terminal_acts(
    readings: World, daemon: Daemon, capfd: pytest.CaptureFixture[str]
) -> None:
    for day in DAYS[:3]:
        land(readings, day, day, name=f"{HOSTILE}.jsonl")
    with readings.open() as platform:
        refresh_on_paper(platform, None, Author("refresh-1", HOSTILE, HOSTILE))
    daemon.tick("published_elsewhere")
    hold_a_correction(readings, reason=HOSTILE)
    daemon.tick("published_elsewhere")
    daemon.launch()
    wrong, ways = looked_at(daemon.instance)
    assert wrong == []
    assert ways == {False, True}
    daemon.tick("announcements")
    said = capfd.readouterr().err
    assert SHOWN in said
    assert not any(character in said for character in "\x9b\u202e\u200b\r")


@pytest.mark.proof
def test_nothing_of_what_a_run_took_refused_and_computed_acts(make_world: MakeWorld) -> None:
    """Real runs with Spark, of rows and files; then the same files again, of which one changed and is held."""
    world = make_world(days=1, domains=TWO_GOLDS)
    world.deliver_rows("products", "2017-01-01", f"{HOSTILE}.jsonl", [product(1, "2017-01-01", HOSTILE)])
    rows = [sale(1, 1, "2017-01-01", basket_id=1)]
    world.deliver_rows("transactions", "2017-01-01", f"{HOSTILE}.jsonl", rows)
    folder = world.settings.landing_folder / "transactions" / "2017-01-01"
    for name in (f"a-{HOSTILE}.csv", f"{HOSTILE}.xls"):
        (folder / name).write_text(f"{HOSTILE.strip()},b\n1,2\n")
    day = date(2017, 1, 1)
    with dg.DagsterInstance.ephemeral() as instance:
        definitions = build_definitions(world.settings)
        materialize_range(definitions, instance, day, day)
        run_job(definitions, instance, "refresh", {"platform/why": HOSTILE})
        wrong, ways = looked_at(instance)
    assert wrong == []
    assert False in ways


def announced(reason: str) -> tuple[str, str]:
    """A failed run's announcement, as it is logged and as it is sent."""
    run = FailedRun("0123456789", "refresh", reason, by_gates=False, is_tried_again=False)
    [told] = announcements(Present((), [run], ui_url="http://ui"), Announced())
    return told.text, str(told.payload["text"])


def test_a_message_to_a_chat_mentions_nobody_and_links_only_to_our_page() -> None:
    logged, sent = announced(f"<!channel> <http://e|pay> {HOSTILE[:-1]}\n`b` &")
    assert not set("\x1b\x9b\u202e\u200b\r") & set(logged)
    title, first, *_, second, link = sent.split("\n")
    assert (title, link) == ("Run 01234567 of refresh failed.", "http://ui/runs/0123456789")
    for line in sent.split("\n")[1:-1]:
        assert (line[0], line[-1], line.count("`")) == ("`", "`", 2)
        assert not set("<>") & set(line)
    assert "&lt;!channel&gt;" in first
    assert second == "`'b' &amp;`"


@pytest.mark.parametrize("letter", ["a", "<", "\x1b"])
def test_a_message_that_is_cut_ends_its_code_and_keeps_its_link(letter: str) -> None:
    for text in announced(f"first\n{letter * 5000}\nlast"):
        assert len(text) <= 2000
        lines = text.split("\n")
        assert len(lines) == 4
        assert lines[1].strip("`") == "first"
        assert lines[2].strip("`").endswith(" …")
        assert lines[3] == "http://ui/runs/0123456789"
        assert all(line.count("`") in (0, 2) for line in lines)


def test_a_description_of_a_table_is_markdown_of_its_owner_in_which_nothing_is_hidden(readings: World) -> None:
    with readings.open() as platform:
        contract = platform.catalogue[SILVER]
    described = describe_table(replace(contract, description=f"**Readings**\n\n{HOSTILE}"))
    assert described.startswith("**Readings**\n\n")
    assert not any(character in described for character in "\x1b\x9b\u202e\u200b\r")
