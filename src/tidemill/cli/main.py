"""The root of the command. Only here do errors become a sentence and an exit code."""

import sys
import traceback
from typing import Annotated

import typer

from tidemill import __version__
from tidemill.cli.accounts import account, admin_accounts, api_keys, registration, second_factor
from tidemill.cli.agent import agent
from tidemill.cli.artefacts import artefacts, models
from tidemill.cli.events import audit, events
from tidemill.cli.jobs import jobs, proof, top
from tidemill.cli.jobs import run as one_line
from tidemill.cli.ledger import ledger
from tidemill.cli.nodes import nodes
from tidemill.cli.operations import admin, config, database, mail, pool
from tidemill.cli.sim import sim
from tidemill.cli.terminal.output import CommandRefused, Exit, exit_code
from tidemill.cli.trust import trust
from tidemill.core.faults import Fault
from tidemill.host.standard_error import say

app = typer.Typer(
    name="tidemill",
    help="One pool of the GPUs of many owners.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(pool.up)
app.command()(pool.down)
app.command("control")(pool.control)
app.command()(pool.status)
app.command()(events.events)
app.command()(config.config)
app.command("setup")(registration.set_up)
app.command()(registration.register)
app.command()(registration.confirm)
app.command()(registration.forgot)
app.command()(registration.reset)
app.command()(account.login)
app.command()(account.logout)
app.command()(account.whoami)
app.command()(account.logins)
app.add_typer(account.sessions_app, name="sessions")
app.add_typer(second_factor.app, name="second-factor")
app.add_typer(database.app, name="db")
app.add_typer(ledger.app, name="ledger")
app.add_typer(nodes.app, name="nodes")
app.add_typer(jobs.app, name="jobs")
app.add_typer(one_line.app, name="run")
app.command()(top.top)
app.add_typer(artefacts.app, name="artefacts")
app.add_typer(models.app, name="models")
app.add_typer(audit.app, name="audit")
app.add_typer(proof.app, name="proof")
app.add_typer(admin.app, name="admin")
app.add_typer(trust.app, name="trust")
admin.app.add_typer(admin_accounts.app)
app.add_typer(mail.app, name="mail")
app.add_typer(api_keys.app, name="keys")
app.add_typer(agent.app, name="agent")
app.add_typer(sim.app, name="sim")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        sys.stdout.write(f"tidemill {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """`run` looks for --debug by itself: errors may come before this is called."""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Typer reports usage errors and Ctrl-C by itself."""
    try:
        app(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else Exit.DONE
    except Exception as error:  # noqa: BLE001  # the last place that can report an error
        if "--debug" in arguments:
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
