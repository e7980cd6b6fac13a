"""`tidemill nodes tokens`: join tokens of your account.

A token is shown once, on stdout and nowhere else; how to use it is said beside it.
"""

from typing import Annotated, Any

import typer

from tidemill.cli.calling import moment
from tidemill.cli.output import AsJson, Declined, print_json, print_line, print_table, report, say
from tidemill.cli.signed_in import SignedIn, signed_in
from tidemill.core.settings.quantities import DURATION

app = typer.Typer(help="Join tokens: list, make, revoke.")

_ROUTE = "/nodes/join-tokens"
_COLUMNS = ("token", "name", "machines", "labels", "made", "ends", "for")


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List your join tokens that are open: more machines can join with them."""
    found = _listed(signed_in())
    if as_json:
        print_json(found)
    else:
        print_table(_COLUMNS, [_row(token) for token in found])


@app.command()
def make(
    name: Annotated[str, typer.Argument(help="What you will know it by.")],
    uses: Annotated[int, typer.Option(min=1, max=10_000, help="How many machines may join with it.")] = 1,
    lifetime: Annotated[str, typer.Option(help="For how long it is good, such as 30m or 7d.")] = "1h",
    label: Annotated[
        list[str] | None, typer.Option(help="A label of the machines, such as rack=7; may be given several times.")
    ] = None,
    house: Annotated[bool, typer.Option("--house", help="For the pool's own machines; for operators.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a join token. It is printed once and never again."""
    lifetime_s = DURATION.read(lifetime)
    if not isinstance(lifetime_s, float):
        raise Declined("Write --lifetime as 30m, 12h or 7d.")
    asked = {"name": name, "uses": uses, "lifetime_s": int(lifetime_s), "labels": label or [], "house": house}
    caller = signed_in()
    made = caller.ask("POST", _ROUTE, asked)
    say(f"On the machine run `tidemill agent join {caller.pool.url}` and give it this token; it is not shown again.")
    if as_json:
        print_json(made)
    else:
        print_line(made["token"])


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id or its name.")], as_json: AsJson = False
) -> None:
    """Revoke a join token, at once. Machines that joined with it stay."""
    caller = signed_in()
    found = _found(_listed(caller), token)
    caller.ask("DELETE", f"{_ROUTE}/{found['id']}")
    report(f"The join token {found['name']} is revoked.", {"revoked": found["id"]}, as_json=as_json)


def _listed(caller: SignedIn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = caller.ask("GET", _ROUTE)["items"]
    return items


def _found(listed: list[dict[str, Any]], text: str) -> dict[str, Any]:
    meant = [token for token in listed if token["id"] == text] or [token for token in listed if token["name"] == text]
    if not meant:
        raise Declined("You have no such join token: `tidemill nodes tokens list` lists those that are open.")
    if len(meant) > 1:
        raise Declined("Several of your join tokens have this name: say which by its id.")
    return meant[0]


def _row(token: dict[str, Any]) -> tuple[str, ...]:
    machines = f"{token['uses']} of {token['uses_max']}"
    ends, house = moment(token["expires_at"]), "the house" if token["house"] else "you"
    return token["id"], token["name"], machines, " ".join(token["labels"]), moment(token["made_at"]), ends, house
