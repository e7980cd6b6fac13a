"""A page as a reader follows it: its commands in order, what it says they print, and how a test has to read it.

Blocks marked `sh` are commands. A block without a mark behind one is what the commands before it print. A block with
any other mark below a line that is only a file's name, such as `job.yaml`, is that file. A comment that nobody sees,
`<!-- run: … -->`, stands before a block where it cannot run as printed:

| it says | what happens |
|---|---|
| `as NAME` | the page, from here on, is for this person of the demonstration; `reader` is who has not logged in |
| `skip: WHY` | the block is not run |
| `first: WHY`, then lines | the lines are run first: they stand for what the reader has or has done |
| `instead: WHY`, then lines | the lines are run in place of the block |
| `types: WHY`, then lines | each line is typed when the block asks something |
| `fails: WHY` | the last command of the block says no |
| `until Ctrl-C: COMMAND` | the line that begins so goes on until Ctrl-C, which comes after a moment |
| `goes on: COMMAND` | the line that begins so goes on until the page ends, as if in another terminal |
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMMANDS = "sh"
PRINTED = ""
EXCEPTIONS = ("skip", "first", "instead", "types", "fails")
"""What makes a block differ from what the reader types. Each says why."""
TURNS = ("as", "until Ctrl-C", "goes on")

_FENCE = re.compile(r"^( *)```([\w.-]*)$")
_FILE = re.compile(r"^`([\w.-]+\.\w+)`:?$")
_MARKER = re.compile(r"<!-- run: (as|until Ctrl-C|goes on|\w+)(?:: | )(.*?)-->", re.DOTALL)
_ANY_MARKER = re.compile(r"<!--\s*run\b")


@dataclass(frozen=True)
class Marker:
    """How to read what follows. `lines` are what stands below the first line."""

    kind: str
    said: str
    lines: str
    line: int


@dataclass(frozen=True)
class Block:
    """A fenced block: its mark, its text, the line that it begins at, and the comments before it."""

    mark: str
    text: str
    line: int
    markers: tuple[Marker, ...] = ()
    file: str = ""
    indented: bool = False

    def marker(self, kind: str) -> Marker | None:
        return next((marker for marker in self.markers if marker.kind == kind), None)

    def said(self, kind: str) -> list[str]:
        return [marker.said for marker in self.markers if marker.kind == kind]


def blocks_of(page: Path) -> list[Block]:
    return list(_blocks(page.read_text("utf-8")))


def exceptions_of(page: Path) -> list[Marker]:
    return [marker for block in blocks_of(page) for marker in block.markers if marker.kind in EXCEPTIONS]


def unread_markers(text: str) -> list[int]:
    """Lines of comments that begin like a marker and are none, or that no block follows."""
    read = {marker.line for block in _blocks(text) for marker in block.markers if _is_whole(marker)}
    return [number for number in _starts(text, _ANY_MARKER) if number not in read]


def _is_whole(marker: Marker) -> bool:
    if marker.kind in TURNS:
        return bool(marker.said) and not marker.lines
    return marker.kind in EXCEPTIONS and len(marker.said.split()) > 2


def _blocks(text: str) -> Iterator[Block]:
    markers = list(_markers(text))
    fence, begun, file = "", 0, ""
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if fence and line.strip() == "```":
            before = tuple(marker for marker in markers if marker.line < begun)
            markers = [marker for marker in markers if marker.line > number]
            indent, mark = _FENCE.match(fence).groups()  # type: ignore[union-attr]
            yield Block(mark, "".join(f"{one}\n" for one in inside), begun, before, file, bool(indent))
            fence, inside, file = "", [], ""
        elif fence:
            inside.append(line)
        elif _FENCE.match(line):
            fence, begun = line, number
        elif line.strip():
            named = _FILE.match(line)
            file = named[1] if named else ""


def _markers(text: str) -> Iterator[Marker]:
    for found in _MARKER.finditer(text):
        said, _, lines = found[2].partition("\n")
        yield Marker(found[1], said.strip(), lines.strip(), text.count("\n", 0, found.start()) + 1)


def _starts(text: str, pattern: re.Pattern[str]) -> list[int]:
    return [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]
