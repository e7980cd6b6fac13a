"""What the programs of a job print, as it comes: their output goes to stdout, and what they say goes to stderr.

A thread reads the pool's stream and goes on where it was when a connection breaks. Where a job has several tasks, each
line tells whose it is. A task that begins again prints the same again: that is shown once.
"""

import json
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.faults import Fault
from tidemill.host.standard_error import printable, say

_AGAIN_S = 2.0

OUTPUT = "out"
"""The stream of what a program prints on its standard output."""

Piece = dict[str, Any]


class OutputFeed:
    """Pieces of output as they come. `is_over` is set once the pool has told that there are no more."""

    def __init__(self, caller: PoolCaller, path: str) -> None:
        self._caller, self._path = caller, path
        self._pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._cursor = ""
        self._left = threading.Event()
        self.is_over = False

    def begin(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def leave(self) -> None:
        self._left.set()

    def next(self, within_s: float) -> Piece | None:
        """The next piece; None if there is none for so long, or none any more."""
        with suppress(queue.Empty):
            piece = self._pieces.get(timeout=max(0.0, within_s))
            self.is_over = self.is_over or piece is None
            return piece
        return None

    def _read(self) -> None:
        while not self._left.is_set():
            try:
                if self._caller.acting(self._read_stream):
                    break
            except (CommandRefused, Fault):
                pass  # whoever asks for the job meets the same fault, and says it
            self._left.wait(_AGAIN_S)
        self._pieces.put(None)

    def _read_stream(self, token: str) -> bool:
        """Read until the stream ends. Answers whether there is nothing more to come."""
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": self._cursor} if self._cursor else {})}
        with self._caller.pool.opened(self._path, token=token, headers=headers) as answer:
            for line in answer.iter_lines():
                if self._left.is_set() or line == "event: end":
                    return True
                if line.startswith("id: "):
                    self._cursor = line.removeprefix("id: ")
                elif line.startswith("data: "):
                    self._pieces.put(json.loads(line.removeprefix("data: ")))
        return False


class OutputPrinter:
    """Prints pieces, each of which is some whole lines. Where there are several tasks, lines begin with the task's
    number."""

    def __init__(self, *, several: bool, to_stderr: bool) -> None:
        self._several, self._to_stderr = several, to_stderr
        self._attempts: dict[int, str] = {}
        self._lines: dict[tuple[int, str], list[str]] = {}
        """What each task has printed on each stream; an attempt's lines are bounded, so this is."""

        self._ahead: dict[tuple[int, str], int] = {}
        """How many of these lines the present attempt has printed again."""

    def print(self, piece: Piece) -> None:
        task, attempt = piece["task"], piece["attempt_id"]
        if self._attempts.setdefault(task, attempt) != attempt:
            self._attempts[task] = attempt
            self._ahead = {key: 0 if key[0] == task else seen for key, seen in self._ahead.items()}
            say(f"Task {task} begins again on another node." if self._several else "It begins again on another node.")
        out = sys.stderr if self._to_stderr or piece["stream"] != OUTPUT else sys.stdout
        mark = f"[{task}] " if self._several else ""
        for line in self._fresh((task, piece["stream"]), piece["text"].split("\n")):
            text = f"{mark}{line}\n"
            out.write(printable(text) if out.isatty() else text)
        out.flush()

    def _fresh(self, key: tuple[int, str], lines: Sequence[str]) -> Iterator[str]:
        """The lines that were not shown of an earlier attempt. What differs from it is shown from there on."""
        shown = self._lines.setdefault(key, [])
        for line in lines:
            at = self._ahead.get(key, 0)
            self._ahead[key] = at + 1
            if shown[at : at + 1] != [line]:
                del shown[at:]
                shown.append(line)
                yield line


@contextmanager
def output_feed(caller: PoolCaller, path: str) -> Iterator[OutputFeed]:
    """The output of a job while somebody watches."""
    feed = OutputFeed(caller, path)
    feed.begin()
    try:
        yield feed
    finally:
        feed.leave()
