"""What may follow the words on a command line: commands, options, choices, files, or ids that a pool has now.

Commands come from the table and from the one module that is called, so nothing but live ids needs a network.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.cli.command_table import COMMANDS
from tidemill.cli.terminal.help_page import is_argument, placeholder, summary_of
from tidemill.cli.terminal.typed_values import choices_of

FILES = ":files"
"""Said instead of words where the shell shall offer files."""

_FILE_PLACES = {"FILE", "FOLDER", "PROGRAM", "SCENE"}

Live = Callable[[str], Sequence[tuple[str, str]]]
"""Asks for the words that stand in a place such as JOB."""


@dataclass(frozen=True)
class Suggestion:
    """A word, and what it is."""

    word: str
    meaning: str = ""


def suggestions(root: Any, words: Sequence[str], live: Live) -> list[Suggestion]:
    """What the last of the words may become. The words before it are complete."""
    *before, begun = words or [""]
    command, rest = _called(root, before)
    waiting = _option_that_waits(command, rest)
    if waiting is not None:
        found = _values(waiting, live)
    elif begun.startswith("-") and "--" not in rest:
        found = _options(command)
    elif hasattr(command, "commands"):
        found = [] if any(not word.startswith("-") for word in rest) else _commands(command)
    else:
        argument = _argument(command, rest)
        found = _values(argument, live) if argument is not None else []
    return [one for one in found if one.word == FILES or one.word.startswith(begun)]


def _called(root: Any, words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the words lead to, and its own words."""
    command, own = root, list(words)
    while own and hasattr(command, "commands"):
        name = own.pop(0)
        below = command.commands.get(name)
        if below is not None:
            command = below
        elif not name.startswith("-"):
            return command, [name, *own]
    return command, own


def _option_that_waits(command: Any, words: Sequence[str]) -> Any:
    """The option that was written last and still wants its value."""
    takes_value: Mapping[str, Any] = {
        name: one for one in command.params if not is_argument(one) and not one.is_flag for name in one.opts
    }
    return takes_value.get(words[-1]) if words else None


def _argument(command: Any, words: Sequence[str]) -> Any:
    """The argument that comes next."""
    valued = {name for one in command.params if not is_argument(one) and not one.is_flag for name in one.opts}
    given = 0
    for number, word in enumerate(words):
        is_value = number > 0 and words[number - 1] in valued
        given += not is_value and not (word.startswith("-") and len(word) > 1)
    for argument in filter(is_argument, command.params):
        if argument.nargs == -1 or given == 0:
            return argument
        given -= 1
    return None


def _commands(group: Any) -> list[Suggestion]:
    if hasattr(group, "sections"):
        return [Suggestion(entry.name, entry.summary) for entry in COMMANDS.values() if not entry.hidden]
    return [Suggestion(name, summary_of(one)) for name, one in group.commands.items() if not one.hidden]


def _options(command: Any) -> list[Suggestion]:
    own = [
        Suggestion(name, one.help or "")
        for one in command.params
        if not is_argument(one) and not one.hidden
        for name in (*one.opts, *one.secondary_opts)
        if name.startswith("--")
    ]
    return [*own, Suggestion("--help", "Show this message and exit.")]


def _values(parameter: Any, live: Live) -> list[Suggestion]:
    place = placeholder(parameter)
    if choices := choices_of(parameter):
        return [Suggestion(choice) for choice in choices]
    if place in _FILE_PLACES or place.endswith("FILE"):
        return [Suggestion(FILES)]
    return [Suggestion(word, meaning) for word, meaning in live(place)]
