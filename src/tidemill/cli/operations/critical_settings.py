"""`tidemill admin settings`: changes of settings that move money or trust, which two operators can approve.

Approving and rejecting goes over HTTP, as the operator who is logged in.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidemill.cli.client.local_pool import connected, database_urls, load_configuration
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, print_json, print_table, report
from tidemill.core.clock import as_datetime
from tidemill.core.settings.critical import SettingChange, SettingChangeState, allowed, critical_values, takes_effect_at
from tidemill.host.standard_error import say
from tidemill.store.operations import critical_settings as store

app = CommandGroup()

Which = Annotated[str, typer.Argument(metavar="NAME", help="The setting, such as money.commission.")]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept.")]

_COLUMNS = ("setting", "in force", "wanted", "state", "by", "since", "takes effect at the first start after")


@app.callback(invoke_without_command=True)
def listed(context: typer.Context, as_json: AsJson = False) -> None:
    """Changes of critical settings that have not taken effect: list, approve, reject."""
    if context.invoked_subcommand is not None:
        return
    in_force, changes = asyncio.run(_read())
    if as_json:
        print_json(
            [
                {**_fields(change), "in_force": in_force.get(change.name), **_times(change, in_force)}
                for change in changes
            ]
        )
    elif changes:
        print_table(_COLUMNS, [_row(change, in_force) for change in changes])
    else:
        say("No change of a critical setting waits.")


@app.command()
def approve(name: Which, reason: Why, as_json: AsJson = False) -> None:
    """Approve what was configured. After two operators' approvals it takes effect when a process starts, without a
    delay."""
    change = _settle(name, "approve", reason)
    if change["state"] == SettingChangeState.PENDING:
        sentence = f"{name} waits for another operator to approve {change['value']} as well, or for its delay."
    else:
        sentence = f"{name} becomes {change['value']}, for each process when it starts next."
    report(sentence, change, as_json=as_json)


@app.command()
def reject(name: Which, reason: Why, as_json: AsJson = False) -> None:
    """Reject a change: it never takes effect, however long it is configured."""
    change = _settle(name, "reject", reason)
    report(f"{name} stays as it is: {change['value']} is rejected.", change, as_json=as_json)


def _settle(name: str, decision: str, reason: str) -> dict[str, Any]:
    settled: dict[str, Any] = pool_caller().ask(
        "POST", f"/admin/settings/{quote(name, safe='')}/{decision}", {"reason": reason}
    )
    return settled


async def _read() -> tuple[Mapping[str, str], Sequence[SettingChange]]:
    """The values in force, and the changes that wait."""
    settings = load_configuration().settings
    async with database_urls(settings) as urls, connected(urls.program) as connection:
        accepted = allowed(settings, await store.accepted(connection))
        return critical_values(settings) | accepted, await store.waiting(connection)


def _fields(change: SettingChange) -> dict[str, object]:
    return {
        "name": change.name,
        "value": change.value,
        "state": change.state.value,
        "proposed_by": change.proposed_by,
        "vouched_by": change.vouched_by,
        "decided_by": change.decided_by,
        "reason": change.reason,
    }


def _times(change: SettingChange, in_force: Mapping[str, str]) -> dict[str, str | None]:
    after = takes_effect_at(change, in_force)
    return {
        "proposed_at": as_datetime(change.proposed_at).isoformat(timespec="seconds"),
        "takes_effect_after": None if after is None else as_datetime(after).isoformat(timespec="seconds"),
    }


def _row(change: SettingChange, in_force: Mapping[str, str]) -> tuple[str, ...]:
    values = (in_force.get(change.name, ""), change.value, change.state.value, change.proposed_by)
    return change.name, *values, *(at or "never" for at in _times(change, in_force).values())
