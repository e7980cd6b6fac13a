"""Runs a customer's program as if it had been started by itself: with its own arguments, name and traceback."""

import linecache
import site
import sys
import traceback
from types import CodeType, ModuleType
from typing import Any

from tidemill.agent.inside.dialogue import UnfitInput, in_sentences, read_work

_FILE = "program.py"


def compiled(parameters: dict[str, Any]) -> CodeType:
    """The customer's program, compiled."""
    text = _text(parameters)
    lines = text.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[_FILE] = (len(text), None, lines, _FILE)  # tracebacks show the lines, though there is no such file
    try:
        return compile(text, _FILE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as wrong:
        raise UnfitInput(
            f"The program is not Python {sys.version_info.major}.{sys.version_info.minor}: {wrong}"
        ) from None


def run(program: CodeType, arguments: list[str]) -> None:
    """Run it. An exception of its own ends it as Python always does, and its traceback begins with its own frames."""
    site.setquit()  # programs call exit(), which only this provides
    sys.argv = [_FILE, *arguments]
    module = sys.modules["__main__"] = ModuleType("__main__")
    try:
        exec(program, module.__dict__)  # noqa: S102 - a sandbox is where this is done
    except Exception as error:  # noqa: BLE001 - whatever a program raises ends it
        _tell(error)
        sys.exit(1)


def _tell(error: Exception) -> None:
    """Tell of an exception as Python does, or as the program wants it, without our own frame."""
    own = error.__traceback__.tb_next if error.__traceback__ else None
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(type(error), error.with_traceback(own), own)
    else:
        sys.excepthook(type(error), error, own)


def _text(parameters: dict[str, Any]) -> bytes:
    if (text := parameters["work"].get("program")) is not None:
        return bytes(text.encode())
    with open(parameters["inputs"]["program"], "rb") as file:
        return file.read()


if __name__ == "__main__":
    with in_sentences():
        parameters = read_work()
        program = compiled(parameters)
    run(program, parameters["work"]["arguments"])
