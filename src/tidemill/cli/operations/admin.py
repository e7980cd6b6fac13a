"""`tidemill admin`: the operator's commands. They use the database directly, so they work when nothing else does."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Annotated

import typer

from tidemill.cli.accounts import admin_accounts
from tidemill.cli.client.local_pool import connected, home_settings, load_configuration, operator_name, running_urls
from tidemill.cli.operations import critical_settings
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.accounts.roles import METRICS_FILE
from tidemill.core.clock import as_datetime
from tidemill.core.ids import Ids
from tidemill.core.operations.switches import Switch, SwitchState, effect
from tidemill.core.refusals import Refusal
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.operations import switches

app = CommandGroup("Run this machine's pool: switches, settings, accounts.")
app.add_typer(critical_settings.app, name="settings")
app.add_typer(admin_accounts.app)

What = Annotated[
    Switch, typer.Argument(metavar="WHAT", help="Which part of the pool: orders, placement, payouts or all.")
]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept and told to everybody.")]


@app.command()
def stop(what: What, reason: Why, as_json: AsJson = False) -> None:
    """Stop a part of the pool. What is in hand is finished; nothing new begins."""
    _report(*asyncio.run(_throw(what, stop=True, reason=reason)), as_json)


@app.command()
def start(what: What, reason: Why, as_json: AsJson = False) -> None:
    """Start a part of the pool again."""
    _report(*asyncio.run(_throw(what, stop=False, reason=reason)), as_json)


@app.command("switches")
def show(as_json: AsJson = False) -> None:
    """How the kill switches stand."""
    states = asyncio.run(_states())
    if as_json:
        print_json([_fields(state) for state in states.values()])
    else:
        columns = ("switch", "state", "since", "by", "reason")
        print_table(columns, [_row(state) for state in states.values()])


@app.command("metrics-token")
def show_metrics_token(as_json: AsJson = False) -> None:
    """The token that lets a monitoring system read /metrics, and nothing else."""
    file = home_settings().home / METRICS_FILE
    if not file.exists():
        raise CommandRefused(f"There is no {file}: start the pool once with `tidemill up`, which makes it.")
    token = file.read_text("utf-8", errors="replace").strip()
    if as_json:
        print_json({"token": token, "file": str(file)})
    else:
        print_line(token)


async def _throw(switch: Switch, *, stop: bool, reason: str) -> tuple[SwitchState, str]:
    """Throw a switch. Returns how it stands, and what follows from that."""
    async with connected(running_urls(load_configuration().settings).program) as connection:
        now = await read_clock(connection)
        async with connection.transaction():
            state = await switches.set_switch(
                connection, switch, stop=stop, reason=reason, by=operator_name(), ids=Ids(secrets.randbits), now=now
            )
        if isinstance(state, Refusal):
            raise CommandRefused(state.sentence)
        await events.wake(connection)
        return state, effect(state, (await switches.states(connection)).values())


async def _states() -> Mapping[Switch, SwitchState]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        return await switches.states(connection)


def _report(state: SwitchState, follows: str, as_json: bool) -> None:
    name = state.switch.value
    is_now = f"`{name}` is {'stopped' if state.stopped else 'running again'}."
    next_step = f"Start it again with: tidemill admin start {name} --reason …" if state.stopped else ""
    sentence = " ".join(filter(None, [is_now, follows, next_step]))
    report(sentence, {**_fields(state), "effect": follows}, as_json=as_json)


def _fields(state: SwitchState) -> dict[str, object]:
    return {
        "name": state.switch.value,
        "stopped": state.stopped,
        "reason": state.reason,
        "changed_by": state.changed_by,
        "changed_at": None if state.changed_at is None else as_datetime(state.changed_at).isoformat(),
    }


def _row(state: SwitchState) -> tuple[str, ...]:
    since = "" if state.changed_at is None else f"{as_datetime(state.changed_at):%Y-%m-%d %H:%M:%S}"
    return state.switch.value, "stopped" if state.stopped else "running", since, state.changed_by, state.reason
