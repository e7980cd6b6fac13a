"""`tidemill account`: the roles of your account, and how to take on another one without asking anybody."""

from typing import Annotated, Any

import typer

from tidemill.cli.client.pool_caller import PoolCaller, pool_caller, session_caller
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table, report
from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.roles import CHOSEN_FREELY, Role

app = CommandGroup("Your account: its roles, and taking on another one.")

_MEANINGS = {
    Role.CUSTOMER: "buys compute",
    Role.PROVIDER: "brings machines and is paid for them",
    Role.DATA_CENTRE: "brings many machines, through the API",
    Role.OPERATOR: "runs the pool",
}
_NEXT = {
    Role.CUSTOMER: "`tidemill run` orders work.",
    Role.PROVIDER: "`tidemill nodes tokens make NAME` makes a token with which a machine joins.",
}


@app.command()
def roles(as_json: AsJson = False) -> None:
    """The roles of your account, and those that you can take on."""
    view = _own_view(pool_caller())
    rows = [(role, _MEANINGS[role], _state(role, view)) for role in Role]
    if as_json:
        print_json([{"role": role.value, "meaning": meaning, "state": state} for role, meaning, state in rows])
    else:
        print_table(("role", "what they do", "you"), [(role.value, meaning, state) for role, meaning, state in rows])


@app.command()
def become(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="customer, to buy; provider, to bring machines.")],
    as_json: AsJson = False,
) -> None:
    """Take on a role. Your sessions have it at once; API keys keep the one they were made in."""
    if role not in CHOSEN_FREELY:
        raise CommandRefused(AccountStateRefusal.ROLE_NOT_FREE.sentence)
    account = _own_view(pool_caller())["account"]
    if role in account["roles"]:
        report(f"You are a {role.value} already. {_NEXT[role]}", account, as_json=as_json)
        return
    session = session_caller()
    wanted = sorted({*account["roles"], role} & CHOSEN_FREELY)
    changed = session.ask("POST", "/account/roles", {"roles": wanted})
    session.keep_roles(tuple(changed["roles"]))
    report(f"You are a {role.value} now. {_NEXT[role]}", changed, as_json=as_json)


def _own_view(caller: PoolCaller) -> dict[str, Any]:
    view: dict[str, Any] = caller.ask("GET", "/account")
    return view


def _state(role: Role, view: dict[str, Any]) -> str:
    if role in view["account"]["roles"]:
        return "have it"
    if role in view["roles_by_request"]:
        return f"can take it on: tidemill account become {role.value}"
    return "an operator gives it"
