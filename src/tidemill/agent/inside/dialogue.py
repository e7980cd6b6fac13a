"""How a program in a sandbox gets its work, and reports progress and failure.

Its one argument is JSON: the kind's work, the paths of its inputs, and what else its runner says. Its result is what is
below `out` when it ends with 0. Progress goes to standard error, in lines `tidemill-progress PPM`, in steps of at least
one per cent. A failure becomes one sentence there and an exit code that says whose fault it is.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

EXIT_UNFIT = 65
EXIT_UNABLE = 69
STEP_PPM = 10_000


class UnfitInput(Exception):
    """An input is not what the task needs; the text says what is wrong. The same on every machine."""


class MachineUnable(Exception):
    """This machine cannot do the work; the text says why. Another one may."""


class ProgressMeter:
    """Says how far the work is."""

    def __init__(self) -> None:
        self._said_ppm = 0

    def at(self, done: int, whole: int) -> None:
        ppm = done * 1_000_000 // max(1, whole)
        if ppm >= self._said_ppm + STEP_PPM:
            self._said_ppm = ppm
            say(f"tidemill-progress {ppm}")


def carry_out(program: Callable[[dict[str, Any], ProgressMeter], None]) -> None:
    """Run a program to its end."""
    with in_sentences():
        program(read_work(), ProgressMeter())


def read_work() -> Any:
    """The program's work. Makes the directory for its results."""
    os.makedirs("out", exist_ok=True)
    return json.loads(sys.argv[1])


@contextmanager
def in_sentences() -> Iterator[None]:
    """Turn a failure inside into a sentence and an exit code."""
    try:
        yield
    except UnfitInput as unfit:
        _leave(str(unfit), EXIT_UNFIT)
    except MachineUnable as unable:
        _leave(str(unable), EXIT_UNABLE)
    except MemoryError:
        _leave("There is not enough memory for this task.", EXIT_UNABLE)
    except OSError as failed:
        _leave(f"A file could not be read or written: {failed.strerror}.", EXIT_UNABLE)


def say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def _leave(sentence: str, code: int) -> NoReturn:
    say(sentence)
    sys.exit(code)
