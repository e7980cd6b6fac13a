"""The walk of a job through the files: every function of ours that a process enters, in order.

A process that finds `WALK` in its environment begins to write down when it gets SIGUSR1, and leaves what it has in that
directory at SIGUSR2. The clock is the machine's, so what several processes wrote can be put in one order.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import tidemill

WALK = "WALK"
_SOURCE = str(Path(tidemill.__file__).parent) + os.sep


@dataclass(frozen=True, order=True)
class Entry:
    """A function was entered: when, in which file, and by its name inside the file."""

    at_ns: int
    file: str
    function: str


def follow(directory: Path) -> None:
    """Be ready to write down. Costs nothing until the signal."""
    entered: list[tuple[int, str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SOURCE):
            entered.append((time.monotonic_ns(), code.co_filename[len(_SOURCE) :], code.co_qualname))

    def begin(*_: object) -> None:
        entered.clear()
        threading.setprofile(note)
        sys.setprofile(note)

    def leave(*_: object) -> None:
        sys.setprofile(None)
        draft = directory / f"{os.getpid()}.draft"
        draft.write_text(json.dumps(entered))
        draft.rename(directory / f"{os.getpid()}.json")

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, leave)


def walked(directory: Path) -> list[Entry]:
    """What all processes wrote, in the order of time."""
    return sorted(Entry(*entry) for file in directory.glob("*.json") for entry in json.loads(file.read_text()))


def missing_step(steps: Iterable[tuple[str, str]], entries: Sequence[Entry]) -> tuple[str, str] | None:
    """The first step that was not entered after the one before it; None if all were."""
    position = 0
    for file, function in steps:
        names = (function, f".{function}")
        while position < len(entries):
            entry = entries[position]
            position += 1
            if entry.file == file and (entry.function == function or entry.function.endswith(names[1])):
                break
        else:
            return file, function
    return None


def turn_backs(files: Sequence[str]) -> int:
    """How often a walk comes back to a file that it had left."""
    seen: set[str] = set()
    before, count = "", 0
    for file in files:
        if file != before:
            count += file in seen
            seen.add(file)
        before = file
    return count
