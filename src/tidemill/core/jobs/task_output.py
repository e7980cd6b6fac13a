"""What a task prints, as lines: bounded in length, in rate and in total. Pure.

The first lines are reported as they come, and the last ones at the end; a line in between says how many were left out.
A line keeps its number in the output, so a reader sees where lines are missing. Whatever a task prints, the number and
length of its lines are bounded, and no line moves a reader's cursor. Lines with which a program reports its progress
are not reported as lines.
"""

import re
from collections import deque
from dataclasses import dataclass, field

WHOLE_PPM = 1_000_000
LINE_MAX = 4_000
HEAD_LINES = 2_000
HEAD_CHARACTERS = 256 * 1024
TAIL_LINES = 100
TAIL_CHARACTERS = 64 * 1024
AT_ONCE = 200
"""The most lines reported at once; of a task that prints more in that time, the middle is left out."""

ERRORS = "stderr"
"""The stream of what is printed on standard error."""

_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if code != 9}
_CUT = "…"
_PROGRESS = re.compile(rb"tidemill-progress ([0-9]{1,7})\r?")


@dataclass(frozen=True)
class OutputLines:
    """Consecutive lines, the first of which has this number."""

    first: int
    lines: tuple[str, ...]


@dataclass
class TaskOutput:
    """One attempt's output. `add` takes what was printed; `due` and `rest` return the lines to report.

    `progress_ppm` is the program's own report of its progress, and `last_line` its last other line: one on
    standard error, if there is any, since programs say there why they fail.
    """

    progress_ppm: int = 0
    _partial: dict[str, bytearray] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)
    _count: int = 0
    _fresh: list[tuple[int, str]] = field(default_factory=list)
    _head_lines: int = 0
    _head_characters: int = 0
    _tail: deque[tuple[int, str]] = field(default_factory=deque)
    _tail_characters: int = 0
    _told_up_to: int = 0

    @property
    def last_line(self) -> str:
        return self._last.get(ERRORS) or next(iter(self._last.values()), "")

    def add(self, stream: str, chunk: bytes) -> None:
        """Take what was printed on one of the streams, cut anywhere."""
        partial = self._partial.setdefault(stream, bytearray())
        *pieces, remainder = chunk.split(b"\n")
        for piece in pieces:
            _extend(partial, piece)
            self._add(stream, partial)
            partial.clear()
        _extend(partial, remainder)

    def due(self) -> list[OutputLines]:
        """The lines that can be reported now."""
        fresh, self._fresh = self._fresh, []
        if len(fresh) > AT_ONCE:
            fresh = fresh[: AT_ONCE // 2] + fresh[-AT_ONCE // 2 :]
        return self._runs(fresh)

    def rest(self) -> list[OutputLines]:
        """The remaining lines, once no more will come."""
        for stream, partial in self._partial.items():
            if partial:
                self._add(stream, partial)
        self._partial.clear()
        lines = self.due()
        tail, self._tail = list(self._tail), deque()
        return lines + self._runs(tail)

    def _add(self, stream: str, raw: bytearray) -> None:
        if progress := _PROGRESS.fullmatch(raw):
            self.progress_ppm = max(self.progress_ppm, min(int(progress[1]), WHOLE_PPM))
            return
        text = raw.decode(errors="replace").translate(_CONTROLS)
        line = text if len(text) <= LINE_MAX else text[: LINE_MAX - 1] + _CUT
        self._last[stream] = line.strip() or self._last.get(stream, "")
        number, self._count = self._count, self._count + 1
        if self._head_lines < HEAD_LINES and self._head_characters + len(line) <= HEAD_CHARACTERS and not self._tail:
            self._head_lines += 1
            self._head_characters += len(line)
            self._fresh.append((number, line))
        else:
            self._keep_last(number, line)

    def _keep_last(self, number: int, line: str) -> None:
        self._tail.append((number, line))
        self._tail_characters += len(line)
        while len(self._tail) > TAIL_LINES or self._tail_characters > TAIL_CHARACTERS:
            self._tail_characters -= len(self._tail.popleft()[1])

    def _runs(self, numbered: list[tuple[int, str]]) -> list[OutputLines]:
        """Group consecutive lines; a line before each gap says how many are missing, in the place of the first."""
        runs: list[OutputLines] = []
        for number, line in numbered:
            missing = number - self._told_up_to
            if missing:
                sentence = f"… {missing:,} {'line was' if missing == 1 else 'lines were'} left out here …"
                runs.append(OutputLines(self._told_up_to, (sentence,)))
            if runs and not missing:
                runs[-1] = OutputLines(runs[-1].first, (*runs[-1].lines, line))
            else:
                runs.append(OutputLines(number, (line,)))
            self._told_up_to = number + 1
        return runs


def _extend(partial: bytearray, piece: bytes) -> None:
    """Of a line that never ends, keep only so much. A character has at most four bytes."""
    room = 4 * LINE_MAX + 4 - len(partial)
    if room > 0:
        partial += piece[:room]
