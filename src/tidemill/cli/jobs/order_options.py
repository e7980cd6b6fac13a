"""The options that every `tidemill run` has, in one place.

A command takes the whole set as one parameter and is marked with `with_options`; typer then sees the single options.
To give all commands another option, add a field to a set below; what it means for the order is said in `order_fields`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from tidemill.cli.jobs.node_options import NodeOptions
from tidemill.cli.terminal.output import AsJson
from tidemill.core.jobs.kinds.task_body import Priority

OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Put the files of the result into this folder.")]
Private = Annotated[bool, typer.Option("--private", help="Seal the results: only you and the pool's check open them.")]

Explain = Annotated[bool, typer.Option("--explain", help="Show every line of the price, and the reasons.")]

_Budget = Annotated[str, typer.Option(help="The most that it may cost, in credits; above, nothing is confirmed.")]
_Urgency = Annotated[Priority, typer.Option(help="How urgent it is.")]
_Tasks = Annotated[str | None, typer.Option(help="How many tasks, or a range such as 4..16; as it suits else.")]


@dataclass(frozen=True, kw_only=True)
class OrderOptions(NodeOptions):
    """What any kind of work can be ordered with, and where its result goes."""

    max_budget: _Budget = "1"
    priority: _Urgency = Priority.NORMAL
    tasks: _Tasks = None
    private: Private = False
    out: OutFolder = None
    explain: Explain = False
    as_json: AsJson = False

    def order_fields(self) -> dict[str, Any]:
        """The fields of an order that these options fill."""
        body: dict[str, Any] = {"max_budget": self.max_budget, "priority": self.priority.value}
        body |= self.node_fields()
        return body if self.tasks is None else {**body, "tasks": self.tasks}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a set of options replaced by the options themselves."""
    hints = get_type_hints(command, include_extras=True)
    sets = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    def called(**given: Any) -> None:
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in sets.items()}
        command(**given, **made)

    own = inspect.signature(command).parameters.values()
    parameters = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own
        if parameter.name not in sets
    ]
    parameters += [option for kind in sets.values() for option in _options_of(kind)]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__module__ = command.__module__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _options_of(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hints[option.name]
        )
        for option in fields(kind)
    ]
