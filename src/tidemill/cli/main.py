"""The root of the command. Only here do errors become a sentence and an exit code.

Modules of commands are imported when they are called: all of them together take longer than any call should.
"""

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from tidemill import __version__
from tidemill.cli.command_table import COMMANDS, Section
from tidemill.cli.terminal.as_option import act_as, with_as_first
from tidemill.cli.terminal.command_group import CommandGroup, HelpfulGroup, click_command
from tidemill.cli.terminal.output import CommandRefused, Exit, exit_code
from tidemill.core.faults import Fault
from tidemill.host.standard_error import say


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each made when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = command = click_command(name, resolve_name(COMMANDS[name].target))
            command.hidden = COMMANDS[name].hidden
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("Commands are listed in the table.")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class RootGroup(HelpfulGroup):
    """The root, whose page of help comes from the table."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Whoever types `tidemill submit` means a command of a group."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException:
            if below := [path for path, _ in self.listed("tidemill") if path.split()[-1] == args[0]]:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {', '.join(map(repr, below))}?")
            raise

    def sections(self) -> Mapping[str, list[tuple[str, str]]]:
        shown = [one for one in COMMANDS.values() if not one.hidden]
        return {title.value: [(one.name, one.summary) for one in shown if one.section is title] for title in Section}


app = CommandGroup()


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        sys.stdout.write(f"tidemill {__version__}\n")
        raise typer.Exit


@app.callback(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and leave.")
    ] = False,
    as_name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            callback=act_as,
            help="Act as this profile (`tidemill profiles`); may stand anywhere in a command, and TIDEMILL_AS does the "
            "same.",
        ),
    ] = None,
) -> None:
    """One pool of the GPUs of many owners."""
    # `run` looks for --debug by itself: errors may come before this is called.


def root_command() -> Any:
    """The command as typer runs it, from which everything below can be reached."""
    return typer.main.get_group(app)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Typer reports usage errors and Ctrl-C by itself."""
    try:
        app(with_as_first(arguments), prog_name="tidemill")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else Exit.DONE
    except Exception as error:  # noqa: BLE001  # the last place that can report an error
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        say(_sentence(error))
        return exit_code(error)
    return Exit.DONE


def _sentence(error: Exception) -> str:
    if isinstance(error, CommandRefused | Fault):
        return str(error)
    if isinstance(error, OSError):
        return f"The system says no to {error.filename or 'us'}: {error.strerror or error}."
    return f"Something broke on our side ({type(error).__name__}): run `tidemill --debug …` again to see where."
