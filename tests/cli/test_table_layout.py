"""Tables in terminals of any width: words wrap, names, ids, amounts and headers stay whole."""

import os
import pty
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.worlds.pools.pool import TIDEMILL, Running, clean_environment
from tidemill.cli.terminal.table_layout import lay_out
from tidemill.host.terminal_text import cells_of, wrapped

ID = "01a1e457-0baf-7960-a23e-15e98fca8080"
JOBS = (
    ("id", "name", "kind", "state", "tasks", "spent", "made (UTC)"),
    [
        ("5fca8080", "", "matmul", "completed", "1 of 1", "0.000028 credits", "2026-11-18 20:19:06"),
        ("0badf00d", "nightly-embeddings-of-mail", "embed", "running", "3 of 12", "0 credits", "2026-11-18 20:19:06"),
    ],
)
RESULTS = (
    ("task", "state", "verdict", "result", "reason"),
    [
        ("0", "completed", "pass", "5fca8080", "The product was checked against its factors by a draw of the pool."),
        ("1", "failed", "", "", "The program ended with 1."),
    ],
)


def test_a_table_that_fits_stands_side_by_side_and_its_sentences_wrap() -> None:
    header, lines = lay_out(*RESULTS, 80)
    assert header == ["task  state      verdict  result    reason"]
    assert lines == [
        "0     completed  pass     5fca8080  The product was checked against its factors",
        "                                    by a draw of the pool.",
        "1     failed                        The program ended with 1.",
    ]


def test_what_does_not_fit_goes_below_its_row_with_its_name() -> None:
    header, lines = lay_out(*JOBS, 80)
    assert header == ["id        name                        kind    state      tasks"]
    assert lines[:2] == [
        "5fca8080                              matmul  completed  1 of 1",
        "  spent: 0.000028 credits   made (UTC): 2026-11-18 20:19:06",
    ]
    assert lay_out(*RESULTS, 56)[1][:3] == [
        "0     completed  pass     5fca8080",
        "  reason: The product was checked against its factors by",
        "    a draw of the pool.",
    ]


def test_a_very_narrow_terminal_shows_a_block_a_row() -> None:
    header, lines = lay_out(("job", "state"), [(ID, "completed"), (ID, "failed")], 40)
    assert header == []
    assert lines == ["job", f"  {ID}", "state  completed", "", "job", f"  {ID}", "state  failed"]


def test_signs_that_take_two_columns_are_counted_as_two() -> None:
    assert cells_of("潮磨坊") == 6
    assert lay_out(("name", "state"), [("潮磨坊", "online"), ("attic", "online")], 80)[1] == [
        "潮磨坊  online",
        "attic   online",
    ]


WORDS = some.text("abcdefgh-:", min_size=1, max_size=30)
CELLS = some.lists(WORDS, max_size=12).map(" ".join)
TABLES = some.integers(1, 7).flatmap(
    lambda width: some.tuples(
        some.lists(WORDS, min_size=width, max_size=width),
        some.lists(some.lists(CELLS, min_size=width, max_size=width), max_size=4),
    )
)


@given(TABLES, some.integers(20, 120))
def test_no_word_is_ever_split_or_lost_and_only_what_cannot_break_is_wider(
    table: tuple[list[str], list[list[str]]], width: int
) -> None:
    columns, rows = table
    header, lines = lay_out(columns, rows, width)
    shown = " ".join([*header, *lines]).split()
    for cell in (cell for row in rows for cell in row):
        words = cell.split()
        assert all(word in shown for word in words)
        if 0 < len(words) <= 3 and cells_of(cell) < width - 40:
            assert any(cell in line for line in lines)
    for line in lines:
        assert cells_of(line) <= width or len(line.split(": ")[-1].split()) <= 3


def test_wrapping_keeps_every_word() -> None:
    assert wrapped("one two three", 7, hanging=2) == ["one two", "  three"]
    assert wrapped(f"{ID} is over", 20) == [ID, "is over"]
    assert wrapped("", 20) == [""]
    assert wrapped("  order  `run it now` first", 21) == ["  order  `run it now`", "  first"]
    assert wrapped("Call `tidemill jobs list` now.", 22) == ["Call", "`tidemill jobs list`", "now."]
    assert wrapped("a ` b", 3) == ["a `", "b"]


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize(
    ("command", "whole"),
    [
        (["config", "http"], ["http.header_deadline_s", "setting", "meaning"]),
        (["admin", "accounts"], ["address", "roles"]),
        (["admin", "switches"], ["placement", "switch"]),
        (["db", "check"], ["check", "result"]),
        (["ledger", "accounts"], ["available", "currency"]),
        (["audit", "show"], ["number", "kind"]),
        (["jobs"], ["submit"]),
    ],
)
def test_real_tables_fit_a_real_terminal(
    shared_pool: Running, command: list[str], whole: list[str], width: int
) -> None:
    lines = on_terminal(shared_pool, command, width)
    assert lines
    for word in whole:
        assert any(word in line for line in lines), lines
    for line in lines:
        assert len(line) <= width or len(line.split()) <= 2, line


def on_terminal(running: Running, command: list[str], width: int) -> list[str]:
    """What a command shows in a terminal of this width."""
    controller, terminal = pty.openpty()
    settings = {"COLUMNS": str(width), "TERM": "xterm"}
    environment = clean_environment(running.home, running.port, {}) | settings
    done = subprocess.Popen([TIDEMILL, *command], stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""
    while chunk := _read(controller):
        shown += chunk
    os.close(controller)
    assert done.wait(20) == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
