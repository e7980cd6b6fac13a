"""`tidemill keys`: the API keys of your account; and, without a key's name, `rotate` for the keys of the pool itself.

A key is shown once, on stdout and nowhere else, so that it can go straight to where it is needed.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller, session_caller
from tidemill.cli.client.references import BY_NAME, chosen
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.accounts.keys import KeyRefusal, key_prefix, looks_like_key
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.references import ObjectKind
from tidemill.core.settings.kinds.quantities import DURATION
from tidemill.host.standard_error import say

app = CommandGroup("Your API keys: list, create, rotate, revoke.\n\nAnd the keys that seal the pool's secrets: rotate.")

_COLUMNS = ("key", "name", "role", "scopes", "networks", "cap", "spent", "made", "last used", "ends")
_ROUTE = "/account/keys"


@app.callback(invoke_without_command=True)
def keys(context: typer.Context, as_json: AsJson = False) -> None:
    """List your API keys that still work, or do one of these."""
    if context.invoked_subcommand is not None:
        return
    keys_found = _listed(pool_caller())
    if as_json:
        print_json(keys_found)
    else:
        print_table(_COLUMNS, [_row(key) for key in keys_found])


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What you will know it by.")],
    *,
    scope: Annotated[list[Scope], typer.Option(help="What it may be used for; may be given several times.")],
    role: Annotated[
        Role | None, typer.Option(help="The role of yours that it acts in; may be left out if you have one.")
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="Where it may be used from, such as 203.0.113.0/24; else anywhere.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When its time is over: after 90d or 12h, or at 2030-01-31 (UTC).")
    ] = None,
    spending_cap: Annotated[str | None, typer.Option(help="The most credits that may ever be spent with it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key. It is printed once and never again."""
    session = session_caller()
    body = {
        "name": name,
        "role": role or _only_role(session),
        "scopes": sorted(set(scope)),
        "networks": network or [],
        "expires_at": None if expires is None else _end(expires).isoformat(),
        "spending_cap": spending_cap,
    }
    _show(session.ask("POST", _ROUTE, body), "This is the key.", as_json=as_json)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help=f"The key: its beginning, {BY_NAME}.")],
    as_json: AsJson = False,
) -> None:
    """Revoke an API key, at once."""
    session = session_caller()
    chosen_key = _chosen_key(_listed(session), key)
    session.ask("DELETE", f"{_ROUTE}/{chosen_key['id']}")
    report(
        f"{chosen_key['prefix']}… ({chosen_key['name']}) is revoked.", {"revoked": chosen_key["id"]}, as_json=as_json
    )


@app.command()
def rotate(
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help=f"Your API key: its beginning, {BY_NAME}.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """With KEY, put a new API key in its place; the old one works on for a while.

    Without KEY, on the pool's own machine: change the keys that seal the pool's secrets, up or down. What was cut short
    is completed by the next run."""
    if key is None:
        from tidemill.cli.operations.pool_keys import rotate_pool_keys

        rotate_pool_keys(as_json)
        return
    session = session_caller()
    chosen_key = _chosen_key([candidate for candidate in _listed(session) if candidate["revoked_at"] is None], key)
    new_key = session.ask("POST", f"{_ROUTE}/{chosen_key['id']}/rotate")
    _show(
        new_key,
        f"This is the key in the place of {chosen_key['prefix']}…, which works on for a while.",
        as_json=as_json,
    )


def _listed(caller: PoolCaller) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = caller.ask("GET", _ROUTE)["items"]
    return items


def _only_role(session: PoolCaller) -> str:
    """The role of an account that has one; with several, the user chooses."""
    own: list[str] = sorted(session.ask("GET", "/account")["account"]["roles"])
    if len(own) != 1:
        raise CommandRefused(f"You are {' and '.join(own)}: say in which role the key acts, with --role {own[0]}.")
    return own[0]


def _chosen_key(listed: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """The one key that the text names. While a rotated key works on, two have its name."""
    prefix = key_prefix(text) if looks_like_key(text) else text
    if by_prefix := [key for key in listed if key["prefix"] == prefix]:
        return by_prefix[0]
    return chosen(ObjectKind.KEY, listed, prefix, KeyRefusal.UNKNOWN_KEY)


def _end(text: str) -> datetime:
    duration_s = DURATION.read(text)
    try:
        if isinstance(duration_s, float):
            return datetime.now(UTC) + timedelta(seconds=duration_s)
        end = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise CommandRefused("Write --expires as 90d or 12h, or as a date such as 2030-01-31.") from None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def _show(new_key: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    say(f"{sentence} Keep it now: it is not shown again.")
    if as_json:
        print_json(new_key)
    else:
        print_line(new_key["key"])


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    ends = min((at for at in (key["expires_at"], key["revoked_at"]) if at), default=None)
    made_for = (key["role"], " ".join(key["scopes"]), " ".join(key["networks"]) or "anywhere")
    money = (key["spending_cap"] or "", key["spent"])
    times = (moment(key["made_at"]), moment(key["last_used_at"]), moment(ends))
    return key["prefix"], key["name"], *made_for, *money, *times
