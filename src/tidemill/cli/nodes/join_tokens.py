"""`tidemill nodes tokens`: join tokens of your account.

A token is shown once, on stdout and nowhere else. How to use it goes to stderr.
"""

from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.client.references import BY_NAME, chosen
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.ids import short_id
from tidemill.core.nodes.join_tokens import LIFETIME_MAX_S, JoinTokenRefusal
from tidemill.core.nodes.pool_urls import is_loopback
from tidemill.core.references import ObjectKind
from tidemill.core.settings.kinds.quantities import DURATION
from tidemill.host.standard_error import say

app = CommandGroup("Join tokens: list, make, revoke.")

_ROUTE = "/nodes/join-tokens"
_COLUMNS = ("name", "joined", "labels", "good until (UTC)", "for")
_NONE = "No join token is open: `tidemill nodes tokens make NAME` makes one."


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List your join tokens that are open: more machines can join with them."""
    tokens = _listed(pool_caller())
    if as_json:
        print_json(tokens)
    elif tokens:
        _print_tokens(tokens)
    else:
        say(_NONE)


@app.command()
def make(
    name: Annotated[str, typer.Argument(help="What you will know it by.")],
    uses: Annotated[int, typer.Option(min=1, max=10_000, help="How many machines may join with it.")] = 1,
    lifetime: Annotated[str, typer.Option(help="For how long it is good, such as 30m or 7d; at most 30d.")] = "1h",
    label: Annotated[
        list[str] | None, typer.Option(help="A label of the machines, such as rack=7; may be given several times.")
    ] = None,
    house: Annotated[bool, typer.Option("--house", help="For the pool's own machines; for operators.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a join token. It is printed once and never again."""
    lifetime_s = DURATION.read(lifetime)
    if not isinstance(lifetime_s, float):
        raise CommandRefused("Write --lifetime as 30m, 12h or 7d.")
    if not 1 <= lifetime_s <= LIFETIME_MAX_S:
        raise CommandRefused(JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED.sentence)
    body = {"name": name, "uses": uses, "lifetime_s": int(lifetime_s), "labels": label or [], "house": house}
    caller = pool_caller()
    token = caller.ask("POST", _ROUTE, body)
    say(_how_to_use(caller.pool.url, uses, lifetime))
    if as_json:
        print_json(token)
    else:
        print_line(token["token"])


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(metavar="TOKEN", help=f"The token: {BY_NAME}; never the token itself.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a join token, at once. Machines that joined with it stay."""
    caller = pool_caller()
    revoked = chosen(ObjectKind.JOIN_TOKEN, _listed(caller), which, JoinTokenRefusal.UNKNOWN_JOIN_TOKEN)
    caller.ask("DELETE", f"{_ROUTE}/{revoked['id']}")
    report(f"The join token {revoked['name']} is revoked.", {"revoked": revoked["id"]}, as_json=as_json)


def _listed(caller: PoolCaller) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = caller.ask("GET", _ROUTE)["items"]
    return items


def _print_tokens(tokens: list[dict[str, Any]]) -> None:
    """Print ids only if several tokens share a name."""
    names = [token["name"] for token in tokens]
    columns = _COLUMNS if len(set(names)) == len(names) else (*_COLUMNS, "id")
    print_table(columns, [(*_row(token), short_id(token["id"]))[: len(columns)] for token in tokens])


def _row(token: dict[str, Any]) -> tuple[str, ...]:
    joined, labels = f"{token['uses']} of {token['uses_max']}", " ".join(token["labels"])
    return token["name"], joined, labels, moment(token["expires_at"]), "the house" if token["house"] else "you"


def _how_to_use(url: str, uses: int, lifetime: str) -> str:
    """How to use the token. The address is the one that we called, which may work on this machine only."""
    local_note = (
        " On other machines write the pool's public address." if is_loopback(urlsplit(url).hostname or "") else ""
    )
    machines = "One machine" if uses == 1 else f"{uses} machines"
    return (
        f"{machines} may join within {lifetime}: run `tidemill agent join {url}` there and give it this token, which "
        f"is not shown again.{local_note}"
    )
