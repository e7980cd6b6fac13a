"""The option `--as NAME`, which may stand anywhere in a command. Reading it imports nothing that calls a pool."""

from collections.abc import Sequence
from contextvars import ContextVar

_AS, _END = "--as", "--"

_option: ContextVar[str | None] = ContextVar("as_option", default=None)


def act_as(name: str | None) -> None:
    """Take the name that the command line gives with `--as`."""
    _option.set(name)


def with_as_first(arguments: Sequence[str]) -> list[str]:
    """The arguments of the command line with `--as NAME` in front, wherever it stood before a `--`."""
    end = arguments.index(_END) if _END in arguments else len(arguments)
    rest, found, waiting = list[str](), list[str](), False
    for argument in arguments[:end]:
        if waiting or argument.startswith(f"{_AS}="):
            found = [_AS, argument if waiting else argument.removeprefix(f"{_AS}=")]
            waiting = False
        elif argument == _AS:
            waiting = True
        else:
            rest.append(argument)
    return [*found, *rest, *([_AS] if waiting else ()), *arguments[end:]]


def named_by_option() -> str | None:
    return _option.get()
