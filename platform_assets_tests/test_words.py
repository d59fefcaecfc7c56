"""Numbers and lists in sentences; what others wrote is shown as it is written, and does nothing where it is shown."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.held_days import withdraw_command
from platform_assets.words import alike, as_chat, as_code, counted, visible


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(0, "file"), "0 files"),
        (counted(1, "file"), "1 file"),
        (counted(2_000, "file"), "2,000 files"),
        (counted(1, "row", "wait"), "1 row waits"),
        (counted(2, "row", "wait"), "2 rows wait"),
    ],
)
def test_one_is_not_many(said: str, expected: str) -> None:
    assert said == expected


def test_files_of_which_the_same_is_to_be_said_but_for_figures_share_a_line() -> None:
    told = {
        "a.csv": "was replaced: 10 bytes with sha256 0a1b were taken, now 11",
        "b.csv": "was replaced: 20 bytes with sha256 ff12 were taken, now 21",
        "c.csv": "lacks the column 'c1'",
        "d.csv": "lacks the column 'c2'",
        "e.csv": "is empty",
    }
    assert list(alike(told.items(), 3)) == [
        "a.csv (and 1 other file likewise) was replaced: 10 bytes with sha256 0a1b were taken, now 11",
        "c.csv lacks the column 'c1'",
        "d.csv lacks the column 'c2'",
        "1 more file, for 1 other reason",
    ]


PACKAGE = Path(__file__).parents[1] / "platform_assets"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\r\n\tb\x7f", r"a\r\n\tb\x7f"),
        ("\x9b2J\x85", r"\u009b2J\u0085"),
        ("evil\u202etxt.exe\u2066", r"evil\u202etxt.exe\u2066"),
        ("gold\u200b.sales\ufeff\u00ad", r"gold\u200b.sales\ufeff\u00ad"),
        ("a\u200db", r"a\u200db"),
        ("a\u2028b\u3164", r"a\u2028b\u3164"),
        ("\U000e0041", r"\U000e0041"),
        ("caf\udce9.csv", r"caf\xe9.csv"),
    ],
)
def test_what_acts_or_is_not_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown, "once is enough"


@pytest.mark.parametrize(
    "text", ["Zoë, 1.50 €", "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f4bb", r"C:\new", "[red]"]
)
def test_all_other_text_is_as_it_was(text: str) -> None:
    assert visible(text) == text


def test_line_breaks_of_the_platform_stay_and_nothing_else() -> None:
    assert visible("a\nb\x1b\r\u2028", breaks=True) == "a\nb\\x1b\\r\\u2028"


@pytest.mark.parametrize("text", ["![x](http://e)", "a `b` ``c``", "`", "", "a\n\nb", "`` x"])
def test_as_code_no_run_of_backticks_within_closes_it(text: str) -> None:
    written = as_code(text)
    fence = written[: len(written) - len(written.lstrip("`"))]
    within = written[len(fence) : -len(fence)]
    assert len(fence) not in map(len, re.findall("`+", within))
    assert not within.startswith("`")
    assert not within.endswith("`")
    assert "\n" not in written
    assert visible(text) in within


def test_a_chat_is_not_given_links_mentions_or_the_end_of_code() -> None:
    assert as_chat("<!channel> `a` & <http://e|b>") == "`&lt;!channel&gt; 'a' &amp; &lt;http://e|b&gt;`"


def test_an_error_is_one_line_for_each_that_the_platform_wrote() -> None:
    error = PlatformError("a\nError: b", "Mend it.", ["c\x1b"])
    assert str(error).splitlines() == [r"a\nError: b", r"c\x1b", "  What to do: Mend it."]
    assert error.what == "a\nError: b\nc\x1b", "for programs"


@pytest.mark.parametrize("path", ["a b's\x1b[2J\n.csv", "\x9bx\u202e.csv", r"back\n'slash" + "\t", "caf\udce9\t.csv"])
def test_a_command_about_a_hostile_name_is_safe_to_see_and_right_to_paste(path: str) -> None:
    command = withdraw_command(path, "a reason")
    assert visible(command) == command
    said = subprocess.run(
        ["bash", "-c", f'set -- {command}; printf %s "$3"'], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert said.stdout.decode(errors="surrogateescape") == path


@pytest.mark.parametrize(
    ("calls", "but"),
    [
        (r"rich\.markup|Console\(", {"cli/console.py", "cli/progress.py"}),
        (r"MetadataValue\.(text|md)\(|TableRecord\(", {"orchestration/assets/events.py"}),
    ],
)
def test_text_leaves_by_few_ways(calls: str, but: set[str]) -> None:
    """Who adds an output is led to where text is made visible."""
    found = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if re.search(calls, path.read_text())
    }
    assert found == but
