"""The root of the command, and the one place where errors become a sentence and an exit code."""

import sys
import traceback
from typing import Annotated

import click
import typer

from tidemill import __version__
from tidemill.cli import admin, config, database, events, pool
from tidemill.cli.output import Declined, Exit, exit_code, say
from tidemill.core.faults import Fault

app = typer.Typer(
    name="tidemill",
    help="One pool of the GPUs of many owners.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(pool.up)
app.command()(pool.down)
app.command()(pool.control)
app.command()(pool.status)
app.command()(events.events)
app.command()(config.config)
app.add_typer(database.app, name="db")
app.add_typer(admin.app, name="admin")


@app.callback()
def root(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    context.obj = debug
    if version:
        sys.stdout.write(f"tidemill {__version__}\n")
        raise typer.Exit


def main() -> None:
    """Run a command. Whatever goes wrong is told in a sentence."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        answer = app(arguments, standalone_mode=False)
        return answer if isinstance(answer, int) else Exit.DONE
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(error.format_message() + "\n")
        return Exit.USAGE
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has left; Python would complain about that once more
        return Exit.DONE
    except Exception as error:  # noqa: BLE001  # the last place where anything can be told
        if debug:
            traceback.print_exc()
        say(_sentence(error))
        return exit_code(error)


def _sentence(error: Exception) -> str:
    if isinstance(error, Declined | Fault):
        return str(error)
    return f"Something broke on our side ({type(error).__name__}): run `tidemill --debug …` again to see where."
