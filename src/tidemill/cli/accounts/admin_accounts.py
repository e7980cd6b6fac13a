"""`tidemill admin accounts|block|unblock|roles|kyc|remove-second-factor`: the pool's people, as operators see them.

It asks the pool over HTTP, as the operator who is logged in. On the pool's own machine, a user who may read its home
need not log in: so an operator who lost device and recovery codes gets back in.
"""

from enum import StrEnum
from typing import Annotated, Any

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import BY_ID, at
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, print_json, print_table, report
from tidemill.core.accounts.kyc import Kyc
from tidemill.core.accounts.roles import Role
from tidemill.core.ids import short_id

app = CommandGroup()

Who = Annotated[str, typer.Argument(metavar="WHO", help=f"The account: its e-mail address, {BY_ID}.")]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and who is blocked is told it.")]

_ROUTE = "/admin/accounts"
_COLUMNS = ("account", "address", "roles", "second factor", "verified", "since", "blocked")


class KycChoice(StrEnum):
    """What an operator may decide about an account's identity."""

    VERIFIED = Kyc.VERIFIED.value
    REJECTED = Kyc.REJECTED.value


@app.command()
def accounts(
    address: Annotated[str | None, typer.Option(help="Only the account with this e-mail address.")] = None,
    role: Annotated[Role | None, typer.Option(help="Only accounts with this role.")] = None,
    kyc: Annotated[Kyc | None, typer.Option(help="Only accounts whose verification stands so.")] = None,
    blocked: Annotated[bool | None, typer.Option("--blocked/--not-blocked", help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the pool's accounts, newest first."""
    filters = {
        "address": address,
        "role": role,
        "kyc": kyc,
        "blocked": None if blocked is None else str(blocked).lower(),
    }
    accounts_found = pool_caller().listed(
        _ROUTE, {name: str(value) for name, value in filters.items() if value is not None}, limit
    )
    if as_json:
        print_json(accounts_found)
    else:
        print_table(_COLUMNS, [_row(account) for account in accounts_found])


@app.command()
def block(who: Who, reason: Why, as_json: AsJson = False) -> None:
    """Block an account: its sessions end and its keys stop working; work in hand is finished and paid."""
    _change(who, "block", {"reason": reason}, "is blocked", as_json=as_json)


@app.command()
def unblock(who: Who, reason: Why, as_json: AsJson = False) -> None:
    """Unblock an account."""
    _change(who, "unblock", {"reason": reason}, "is unblocked", as_json=as_json)


@app.command()
def roles(
    who: Who,
    given: Annotated[list[Role], typer.Argument(metavar="ROLE...", help="All the roles it shall have.")],
    reason: Why,
    as_json: AsJson = False,
) -> None:
    """Decide which roles an account has. A role that is not named is taken away."""
    operator = pool_caller()
    names, had = ", ".join(sorted(set(given))), operator.ask("GET", at(_ROUTE, who))["roles"]
    taken = " and ".join(sorted(set(had) - set(given)))
    result = f"is {names}, and not {taken} any more" if taken else f"is {names}"
    changed = operator.ask("POST", at(_ROUTE, who, "roles"), {"reason": reason, "roles": sorted(set(given))})
    counts_from = changed["decides_with_others_from"]
    word = f" Their word counts in decisions of two from {moment(counts_from)} UTC." if counts_from else ""
    report(f"{changed['address']} {result}.{word}", changed, as_json=as_json)


@app.command()
def kyc(
    who: Who,
    decision: Annotated[KycChoice, typer.Argument(help="What was found.")],
    reason: Why,
    as_json: AsJson = False,
) -> None:
    """Say that a provider is who they say they are, or is not."""
    _change(who, "kyc", {"reason": reason, "state": decision}, f"is {decision}", as_json=as_json)


@app.command()
def remove_second_factor(who: Who, reason: Why, as_json: AsJson = False) -> None:
    """For an owner who lost device and recovery codes, and has shown some other way who they are. They are told."""
    _change(who, "second-factor/remove", {"reason": reason}, "has no second factor any more", as_json=as_json)


def _change(account: str, action: str, body: dict[str, object], result: str, *, as_json: bool) -> None:
    changed = pool_caller().ask("POST", at(_ROUTE, account, action), body)
    report(f"{changed['address']} {result}.", changed, as_json=as_json)


def _row(account: dict[str, Any]) -> tuple[str, ...]:
    second_factor = "on" if account["second_factor_on"] else "off"
    checks = (second_factor, account["kyc"], moment(account["created_at"]))
    return (
        short_id(account["id"]),
        account["address"],
        " ".join(account["roles"]),
        *checks,
        account["blocked_reason"] or "",
    )
