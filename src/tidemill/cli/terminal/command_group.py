"""Commands and groups of commands, with our pages of help. A group that is called alone shows its page.

Where a command takes a reference, `-1`, `-2` and so on are `last`, `last-1` and so on.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from tidemill.cli.terminal.help_page import help_page, summary_of, usage
from tidemill.cli.terminal.output import print_json
from tidemill.cli.terminal.typed_values import read_leanly

Function = TypeVar("Function", bound=Callable[..., Any])

_PLACE = re.compile(r"-[1-9][0-9]{0,3}", re.ASCII)


class HelpfulCommand(TyperCommand):
    """A command whose page of help is ours."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            read_leanly(parameter)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            read_leanly(option)
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `-1` as `last`, where the command takes something of that kind."""
        if any(isinstance(parameter, TyperArgument) for parameter in self.params):
            named = [one for one in self.params if isinstance(one, TyperOption)]
            options = {word for one in named for word in (*one.opts, *one.secondary_opts)}
            with_values = {word for one in named if not (one.is_flag or one.count) for word in one.opts}
            args = list(places_in_words(args, options=options, with_values=with_values))
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        return help_page(self, ctx)

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {usage(self, ctx)}"


class HelpfulGroup(TyperGroup):
    """A group whose page of help is ours. Called alone it shows that, or with `--json` the list of its commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for parameter in self.params:
            read_leanly(parameter)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            read_leanly(option)
        return option

    def get_help(self, ctx: Any) -> str:
        return help_page(self, ctx)

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {usage(self, ctx)}"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not self.invoke_without_command and not ctx.resilient_parsing:
            if not args:
                typer.echo(self.get_help(ctx))
                ctx.exit()
            if args == ["--json"]:
                print_json([{"command": path, "summary": summary} for path, summary in self.listed(ctx.command_path)])
                ctx.exit()
        return super().parse_args(ctx, args)

    def listed(self, path: str) -> list[tuple[str, str]]:
        """Every command below this one, and what it does."""
        found: list[tuple[str, str]] = []
        for name, command in self.commands.items():
            if not command.hidden:
                found.append((f"{path} {name}", summary_of(command)))
                found += command.listed(f"{path} {name}") if isinstance(command, HelpfulGroup) else []
        return found


class CommandGroup(typer.Typer):
    """A group of commands, to which functions are added by `@app.command()`."""

    def __init__(self, text: str = "") -> None:
        said: dict[str, Any] = {"help": text} if text else {}
        super().__init__(cls=HelpfulGroup, rich_markup_mode=None, add_completion=False, **said)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        return super().command(name, **{"cls": HelpfulCommand, **options})


def click_command(name: str, target: Any) -> Any:
    """A command or a group, from a function or a `CommandGroup`."""
    if isinstance(target, CommandGroup):
        group = typer.main.get_group(target)
        group.name = name
        return group
    alone = CommandGroup()
    alone.command(name)(target)
    return typer.main.get_command(alone)


def places_in_words(words: Iterable[str], *, options: Collection[str], with_values: Collection[str]) -> Iterator[str]:
    """The words of a command line, with `last` for `-1` and so on.

    A number with a minus is left alone behind `--`, where it is the value of an option, and where the command has an
    option of that name. `with_values` are the options that take the next word.
    """
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield word
            yield from rest
        elif _PLACE.fullmatch(word) and word not in options:
            back = int(word[1:]) - 1
            yield f"last-{back}" if back else "last"
        else:
            yield word
            if word in with_values:
                yield from (value for value in [next(rest, None)] if value is not None)
