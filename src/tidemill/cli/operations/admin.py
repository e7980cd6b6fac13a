"""`tidemill admin`: the operator's commands: switches, settings, accounts.

A switch is thrown over HTTP, as whoever the command acts as, so that the trail has their account. Where this machine's
pool does not answer, the command works on its database, so it works when nothing else does.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from tidemill.cli.accounts import admin_accounts
from tidemill.cli.client.actors import actor_names
from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.identity import chosen, own_pool
from tidemill.cli.client.local_pool import connected, home_settings, load_configuration, operator_name, running_urls
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.operations import critical_settings
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.accounts.roles import METRICS_FILE
from tidemill.core.clock import as_datetime
from tidemill.core.faults import Fault, NotRunning
from tidemill.core.ids import Ids
from tidemill.core.operations.switches import Switch, SwitchState, effect
from tidemill.core.refusals import Refusal
from tidemill.host.standard_error import say
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.operations import switches

app = CommandGroup("Run this machine's pool: switches, settings, accounts.")
app.add_typer(critical_settings.app, name="settings")
app.add_typer(admin_accounts.app)

T = TypeVar("T")

_SWITCHES = "/admin/switches"

What = Annotated[
    Switch, typer.Argument(metavar="WHAT", help="Which part of the pool: orders, placement, payouts or all.")
]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept and told to everybody.")]


@app.command()
def stop(what: What, reason: Why, as_json: AsJson = False) -> None:
    """Stop a part of the pool. What is in hand is finished; nothing new begins."""
    _report(_throw(what, reason, stop=True), as_json)


@app.command()
def start(what: What, reason: Why, as_json: AsJson = False) -> None:
    """Start a part of the pool again."""
    _report(_throw(what, reason, stop=False), as_json)


@app.command("switches")
def show(as_json: AsJson = False) -> None:
    """How the kill switches stand."""
    states = _states()
    if as_json:
        print_json(states)
    else:
        columns = ("switch", "state", "since", "by", "reason")
        print_table(columns, [_row(state) for state in states])


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


def _throw(switch: Switch, reason: str, *, stop: bool) -> Mapping[str, Any]:
    """Throw a switch, as whoever the command acts as. Without an answer of this machine's pool, in its database."""
    action = "stop" if stop else "start"

    def in_database() -> Mapping[str, Any]:
        thrown = asyncio.run(_throw_in_database(switch, stop=stop, reason=reason))
        say("The pool did not answer: this was done in its database, as the user of this machine.")
        return thrown

    path = f"{_SWITCHES}/{switch.value}/{action}"
    return _answered(lambda caller: _named(caller, [caller.ask("POST", path, {"reason": reason})])[0], in_database)


def _states() -> list[Mapping[str, Any]]:
    return _answered(
        lambda caller: _named(caller, caller.ask("GET", _SWITCHES)["items"]), lambda: asyncio.run(_states_in_database())
    )


def _named(caller: PoolCaller, shown: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """Switches with the addresses of the accounts that threw them."""
    names = actor_names(caller, [switch["changed_by"] for switch in shown])
    return [{**switch, "changed_by": names[switch["changed_by"]]} for switch in shown]


def _answered(ask: Callable[[PoolCaller], T], in_database: Callable[[], T]) -> T:
    """What the pool answers; what its database says, if this machine's pool gives no answer."""
    try:
        url, profile = chosen()
    except NotRunning:
        return in_database()
    is_own = url in own_pool().urls
    if is_own and profile is None:
        return in_database()
    try:
        return ask(pool_caller())
    except Fault:
        if is_own:
            return in_database()
        raise


async def _throw_in_database(switch: Switch, *, stop: bool, reason: str) -> Mapping[str, Any]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        now = await read_clock(connection)
        async with connection.transaction():
            state = await switches.set_switch(
                connection, switch, stop=stop, reason=reason, by=operator_name(), ids=Ids(secrets.randbits), now=now
            )
        if isinstance(state, Refusal):
            raise CommandRefused(state.sentence)
        await events.wake(connection)
        return {**_fields(state), "effect": effect(state, (await switches.states(connection)).values())}


async def _states_in_database() -> list[Mapping[str, Any]]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        return [_fields(state) for state in (await switches.states(connection)).values()]


def _report(thrown: Mapping[str, Any], as_json: bool) -> None:
    name, is_stopped = thrown["name"], thrown["stopped"]
    is_now = f"`{name}` is {'stopped' if is_stopped else 'running again'}."
    by = f"It is recorded as done by {thrown['changed_by']}."
    next_step = f"Start it again with: tidemill admin start {name} --reason …" if is_stopped else ""
    report(" ".join(filter(None, [is_now, thrown["effect"], by, next_step])), thrown, as_json=as_json)


def _fields(state: SwitchState) -> Mapping[str, Any]:
    """A switch as the pool's route shows it."""
    return {
        "name": state.switch.value,
        "stopped": state.stopped,
        "reason": state.reason,
        "changed_by": state.changed_by,
        "changed_at": None if state.changed_at is None else as_datetime(state.changed_at).isoformat(),
    }


def _row(state: Mapping[str, Any]) -> tuple[str, ...]:
    stands = "stopped" if state["stopped"] else "running"
    return state["name"], stands, moment(state["changed_at"]), state["changed_by"], state["reason"]
