"""Runs a customer's program as if it had been started by itself: with its own arguments, name and traceback."""

import site
import sys
from types import CodeType, ModuleType
from typing import Any

from tidemill.agent.inside.dialogue import UnfitInput, in_sentences, read_work


def compiled(parameters: dict[str, Any]) -> CodeType:
    """The customer's program, compiled."""
    try:
        return compile(_text(parameters), "program.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as wrong:
        raise UnfitInput(
            f"The program is not Python {sys.version_info.major}.{sys.version_info.minor}: {wrong}"
        ) from None


def run(program: CodeType, arguments: list[str]) -> None:
    """Run it. An exception of its own ends it as Python always does."""
    site.setquit()  # programs call exit(), which only this provides
    sys.argv = ["program.py", *arguments]
    module = sys.modules["__main__"] = ModuleType("__main__")
    exec(program, module.__dict__)  # noqa: S102 - a sandbox is where this is done


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
