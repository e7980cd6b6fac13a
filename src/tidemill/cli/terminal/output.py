"""What a command prints: results on stdout, everything else on stderr, and one sentence for an error.

Exit codes are stable; programs may match them. Off a terminal there is no colour and nothing moves.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any

import typer

from tidemill.core.faults import AlreadyRunning, Fault, NotRunning, SettingsFault
from tidemill.host.standard_error import printable, say

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


class Exit(IntEnum):
    """What a command's end means."""

    DONE = 0, "It was done."
    NO = 1, "The answer is no: refused, a check failed, or you did not confirm."
    USAGE = 2, "The command was not written as its help says."
    SETTINGS = 3, "A setting is unknown or wrong; nothing was started."
    NOT_RUNNING = 4, "The pool is not running, or it is running and must not."
    FAULT = 5, "The world failed: the database, the disk, the network."
    FINAL = 6, "This agent is done for good: its node was removed, or the pool is another one."
    BUG = 70, "Something broke on our side."
    INTERRUPTED = 130, "Ctrl-C."

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


class CommandRefused(Exception):
    """The answer is no, and the sentence says why."""


_CODES: Sequence[tuple[type[Exception], Exit]] = (
    (CommandRefused, Exit.NO),
    (SettingsFault, Exit.SETTINGS),
    (NotRunning, Exit.NOT_RUNNING),
    (AlreadyRunning, Exit.NOT_RUNNING),
    (Fault, Exit.FAULT),
    (OSError, Exit.FAULT),
    (Exception, Exit.BUG),
)


def exit_code(error: Exception) -> Exit:
    """The most specific code for what went wrong."""
    return next(code for kind, code in _CODES if isinstance(error, kind))


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2 if sys.stdout.isatty() else None) + "\n")
    sys.stdout.flush()


def report(sentence: str, fields: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a command has done: a sentence for people, or fields for programs."""
    if as_json:
        print_json(fields)
    else:
        say(sentence)


def print_line(line: str) -> None:
    """Print one line of a result, unbroken, however narrow the terminal."""
    sys.stdout.write(printable(line) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without borders. Long cells are folded on a terminal and left whole elsewhere."""
    if not sys.stdout.isatty():
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            print_line("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_fields(fields: Mapping[str, str]) -> None:
    """Print names and values, one a line."""
    width = max(map(len, fields))
    for name, value in fields.items():
        print_line(f"{name:<{width}}  {value}")


def in_words(size_bytes: int) -> str:
    """A size as people say it."""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.1f} KiB"
