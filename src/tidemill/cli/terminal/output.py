"""What a command prints: results on stdout, everything else on stderr, and one sentence for an error.

Exit codes are stable; programs may match them. Off a terminal there is no colour and nothing moves.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any

import typer

from tidemill.cli.terminal.table_layout import lay_out, named_value
from tidemill.core.faults import AlreadyRunning, Fault, NotRunning, SettingsFault
from tidemill.host.standard_error import printable, say
from tidemill.host.terminal_text import wrapped

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
    """Print a table without borders: on a terminal to its width, elsewhere with whole values in one line a row."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        header, lines = lay_out(columns, [[cell.expandtabs(1) for cell in row] for row in cells], _terminal_width())
        lines = [*(bold(line) for line in header), *lines]
    else:
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        table = (map(str.ljust, row, widths) for row in (columns, *cells))
        lines = ["  ".join(row).rstrip() for row in table]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def print_fields(fields: Mapping[str, str]) -> None:
    """Print names and values, one a line."""
    print_pairs(list(fields.items()))


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one a line. A name may come more than once."""
    names = max(len(name) for name, _ in pairs)
    if not sys.stdout.isatty():
        for name, value in pairs:
            print_line(f"{name:<{names}}  {value}")
        return
    width = _terminal_width()
    for name, value in pairs:
        for line in named_value(name, printable(value), names, width):
            print_line(line)


def print_text(text: str) -> None:
    """Print a sentence of a result; on a terminal it wraps between words."""
    for line in wrapped(text, _terminal_width()) if sys.stdout.isatty() else [text]:
        print_line(line)


def bold(line: str) -> str:
    """A line of a header, where the terminal knows how."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
    return line if plain or not line else f"\x1b[1m{line}\x1b[0m"


def _terminal_width() -> int:
    return shutil.get_terminal_size().columns


def counted(count: int, noun: str) -> str:
    """A number of things as people say it."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_words(size_bytes: int) -> str:
    """A size as people say it."""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.1f} KiB"
