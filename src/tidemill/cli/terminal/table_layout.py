"""How a table stands in a terminal of any width. Pure: lines in, no terminal.

Sentences wrap between words. Names, amounts, times, ids, digests and headers never break: what is short stays whole.
Where the columns do not fit side by side, sentences go below their row, then the columns furthest right, as
`name: value`. If hardly a column is left, each row is printed as a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.host.terminal_text import cells_of, wrapped

GAP = 2
_WHOLE_WORDS = 3
"""A cell of so many words is a name, an amount or a time, and stays on one line."""

_SENTENCE_MIN = 24
"""A column of sentences that is narrower than this reads badly."""

_INDENT = "  "
_BETWEEN = "   "

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class _Column:
    """How wide a column would like to be, and how narrow it may get."""

    index: int
    natural: int
    least: int
    is_empty: bool

    @property
    def wraps(self) -> bool:
        return self.least < self.natural


def lay_out(columns: Sequence[str], rows: Rows, width: int) -> tuple[list[str], list[str]]:
    """The lines of the header and of the rows. A block has no header."""
    measured = [_measured(index, name, [row[index] for row in rows]) for index, name in enumerate(columns)]
    beside = _beside(measured, width)
    if len(beside) < min(2, len(measured)):
        return [], _blocks(columns, rows, width)
    widths = _widths(beside, width)
    below = [column.index for column in measured if column not in beside]
    lines: list[str] = []
    for row in rows:
        lines += _side_by_side([row[column.index] for column in beside], widths)
        lines += below_lines([(columns[index], row[index]) for index in below], width)
    return _side_by_side([columns[column.index] for column in beside], widths), lines


def below_lines(named: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Values below their row: short ones share lines, sentences have their own. What is empty is left out."""
    lines: list[str] = []
    current = ""
    for name, value in named:
        pair = f"{name}: {value}"
        if not value:
            continue
        if _stays_whole(value) and current and cells_of(current + _BETWEEN + pair) <= width:
            current += _BETWEEN + pair
            continue
        lines += [current] if current else []
        current = _INDENT + pair
        if not _stays_whole(value):
            lines += [_INDENT + line for line in wrapped(pair, width - len(_INDENT), hanging=len(_INDENT))]
            current = ""
    return [*lines, current] if current else lines


def padded(text: str, width: int) -> str:
    return text + " " * (width - cells_of(text))


def _stays_whole(cell: str) -> bool:
    return len(cell.split()) <= _WHOLE_WORDS


def _measured(index: int, name: str, cells: Sequence[str]) -> _Column:
    natural = max(cells_of(line) for cell in (name, *cells) for line in cell.splitlines() or [""])
    unbreakable = [cell if _stays_whole(cell) else max(cell.split(), key=cells_of) for cell in (name, *cells)]
    return _Column(index, natural, max(map(cells_of, unbreakable)), not any(cells))


def _beside(columns: Sequence[_Column], width: int) -> list[_Column]:
    """The columns that fit side by side. First those go that are empty anyway."""
    beside = list(columns)
    while len(beside) > 1 and _needed(beside, width) > width:
        empty = [column for column in beside[1:] if column.is_empty]
        sentences = [column for column in beside[1:] if column.wraps]
        beside.remove((empty or sentences or beside)[-1])
    return beside


def _needed(columns: Sequence[_Column], width: int) -> int:
    return sum(_comfortable(column, width) for column in columns) + GAP * (len(columns) - 1)


def _comfortable(column: _Column, width: int) -> int:
    return max(column.least, min(column.natural, _SENTENCE_MIN, width))


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """What is left over goes to the sentences, shortest first, in equal shares."""
    widths = {column.index: min(width, _comfortable(column, width)) for column in columns}
    left = width - GAP * (len(columns) - 1) - sum(widths.values())
    growing = sorted((c for c in columns if c.natural > widths[c.index]), key=lambda c: c.natural)
    for number, column in enumerate(growing):
        more = max(0, min(column.natural - widths[column.index], left // (len(growing) - number)))
        widths[column.index] += more
        left -= more
    return [widths[column.index] for column in columns]


def _side_by_side(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    parts = [
        [cell] if _stays_whole(cell) and "\n" not in cell else wrapped(cell, width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, parts))):
        line = [part[number] if number < len(part) else "" for part in parts]
        lines.append((" " * GAP).join(map(padded, line, widths)).rstrip())
    return lines


def _blocks(columns: Sequence[str], rows: Rows, width: int) -> list[str]:
    """Each row as names and values, one a line."""
    lines: list[str] = []
    names = max(map(cells_of, columns))
    for row in rows:
        lines += [""] if lines else []
        for name, value in zip(columns, row, strict=True):
            if value:
                lines += named_value(name, value, names, width)
    return lines


def named_value(name: str, value: str, names: int, width: int) -> list[str]:
    """A name, and its value in a column of its own; what is too long for that goes below the name."""
    indent = names + GAP
    longest = max(map(cells_of, value.split()), default=0)
    if longest > width - indent:
        return [name.rstrip(), *(_INDENT + line for line in wrapped(value, width - len(_INDENT)))]
    first, *others = wrapped(value, width - indent)
    return [padded(name, names) + " " * GAP + first, *(" " * indent + line for line in others)]
