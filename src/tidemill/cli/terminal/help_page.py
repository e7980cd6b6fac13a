"""The page of help of a command: how it is called, what it does, its options, and examples to copy.

Nothing is cut and nothing is wider than 80 columns. Examples come from the table of them.
"""

import inspect
import shutil
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from tidemill.cli.command_examples import EXAMPLES
from tidemill.cli.terminal.table_layout import padded
from tidemill.cli.terminal.typed_values import PLACEHOLDERS, choices_of, in_range, value_type
from tidemill.host.terminal_text import cells_of, wrapped

WIDTH_MAX = 80
_NAMES_MAX = 26
_CHOICES_MAX = 26
_INDENT = "  "

Rows = Sequence[tuple[str, str]]


def help_page(command: Any, context: Any) -> str:
    """The whole page, without a last line break."""
    width = min(shutil.get_terminal_size().columns, WIDTH_MAX)
    parameters = [parameter for parameter in command.get_params(context) if not parameter.hidden]
    arguments = [(placeholder(one), meaning(one)) for one in parameters if is_argument(one)]
    options = [(_option_names(one), meaning(one)) for one in parameters if not is_argument(one)]
    sections = [
        "\n".join(wrapped(f"Usage: {usage(command, context)}", width, hanging=7)),
        "\n\n".join("\n".join(_indented(paragraph, width)) for paragraph in paragraphs(command)),
        _section("Arguments", arguments, width),
        *(_section(title, rows, width) for title, rows in command_sections(command).items()),
        _section("Options", options, width),
        "\n".join(["Examples:", *(f"{_INDENT}{line}" for line in examples_of(context.command_path))]),
    ]
    return "\n\n".join(filter(None, sections))


def usage(command: Any, context: Any) -> str:
    """How the command is called, as one line."""
    parameters = [parameter for parameter in command.get_params(context) if not parameter.hidden]
    arguments = [_argument_name(one) for one in parameters if is_argument(one)]
    below = ("[COMMAND …]" if command.invoke_without_command else "COMMAND …") if hasattr(command, "commands") else ""
    extra = "[-- …]" if command.context_settings.get("allow_extra_args") else ""
    return " ".join(filter(None, [context.command_path, "[OPTIONS]", below, *arguments, extra]))


def paragraphs(command: Any) -> list[str]:
    """What a command says of itself, each paragraph as one line."""
    return [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(command.help or "").split("\n\n")]


def summary_of(command: Any) -> str:
    """The first paragraph, which stands beside the command's name in a list."""
    return paragraphs(command)[0]


def examples_of(path: str) -> list[str]:
    """Examples of a command, by its path with `tidemill` in front."""
    program, _, below = path.partition(" ")
    return [f"{program} {example}" for example in EXAMPLES.get(below, ())]


def command_sections(command: Any) -> Mapping[str, Rows]:
    """The commands of a group, under the titles they stand under."""
    if own := getattr(command, "sections", None):
        return own()  # type: ignore[no-any-return]
    commands: Mapping[str, Any] = getattr(command, "commands", {})
    rows = [(name, summary_of(below)) for name, below in commands.items() if not below.hidden]
    return {"Commands": rows} if rows else {}


def is_argument(parameter: Any) -> bool:
    return str(parameter.param_type_name) == "argument"


def placeholder(parameter: Any) -> str:
    """What stands for a value: JOB, SECONDS, low|normal|high."""
    name = parameter.metavar.strip("[]").removesuffix("...").removesuffix("…") if parameter.metavar else ""
    if name:
        return str(name)
    if is_argument(parameter):
        return str(parameter.name).upper().replace("_", "-")
    choices = "|".join(choices_of(parameter))
    if choices:
        return choices if len(choices) <= _CHOICES_MAX else str(parameter.name).upper()
    return PLACEHOLDERS.get(value_type(parameter), "VALUE")


def meaning(parameter: Any) -> str:
    """What a parameter means, with its choices, its bounds and its default."""
    needed = "must be given" if parameter.required and not is_argument(parameter) else ""
    remarks = "; ".join(filter(None, (default_of(parameter), needed)))
    return f"{explained(parameter)} ({remarks})".strip() if remarks else explained(parameter)


def explained(parameter: Any) -> str:
    """What a parameter means, with what it may be."""
    text = parameter.help or ""
    choices, bounds = choices_of(parameter), in_range(parameter.min, parameter.max)
    if choices and "|".join(choices) != placeholder(parameter) and not all(choice in text for choice in choices):
        text = f"{text} One of {', '.join(choices)}."
    return f"{text} {bounds.capitalize()}.".strip() if bounds else text


def default_of(parameter: Any) -> str:
    """Its default in words; empty if it has none, or none that says anything."""
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if parameter.show_default is False or default is None or isinstance(default, bool) or default in ("", (), []):
        return ""
    return f"default {default}"


def _argument_name(parameter: Any) -> str:
    name = placeholder(parameter) + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _option_names(parameter: Any) -> str:
    shortest_first = sorted(parameter.opts, key=lambda name: name.startswith("--"))
    value = "" if parameter.is_flag or parameter.count else f" {placeholder(parameter)}"
    negative = f" / {', '.join(parameter.secondary_opts)}" if parameter.secondary_opts else ""
    return ", ".join(shortest_first) + negative + value


def _section(title: str, rows: Rows, width: int) -> str:
    if not rows:
        return ""
    names = min(max(cells_of(name) for name, _ in rows), _NAMES_MAX)
    indent = " " * (names + 2 * len(_INDENT))
    lines = [f"{title}:"]
    for name, text in rows:
        first, *others = wrapped(text, width - len(indent))
        is_long = cells_of(name) > names
        lines += [_INDENT + name] if is_long else []
        lines += [(indent if is_long else f"{_INDENT}{padded(name, names)}{_INDENT}") + first]
        lines += [indent + line for line in others]
    return "\n".join(line.rstrip() for line in lines)


def _indented(paragraph: str, width: int) -> list[str]:
    return [_INDENT + line for line in wrapped(paragraph, width - len(_INDENT))]
