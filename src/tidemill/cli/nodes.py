"""`tidemill nodes`: the machines that you have in the pool; and, for operators, everybody's.

It asks the pool over HTTP. A node is meant by its id or its name. What is done on the machine itself is in `agent`.
"""

import json
import sys
from typing import Annotated, Any
from uuid import UUID

import typer

from tidemill.cli import join_tokens
from tidemill.cli.calling import moment
from tidemill.cli.node_watch import follow
from tidemill.cli.output import AsJson, Declined, print_fields, print_json, print_line, print_table, report
from tidemill.cli.signed_in import SignedIn, as_operator

app = typer.Typer(help="Your machines in the pool: list, show, watch, rules, drain, pause, resume, remove.")
app.add_typer(join_tokens.app, name="tokens")

Which = Annotated[str, typer.Argument(metavar="NODE", help="The node: its id or its name.")]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and the owner can read it.")]

_ROUTE = "/nodes"
_COLUMNS = ("node", "name", "life", "conditions", "devices", "agent", "last heard")
_TEXTS = {"price", "minimum_price", "work", "region"}
"""Rules whose values are texts however they look."""

_HISTORY = 20


@app.command("list")
def list_nodes(
    owner: Annotated[str | None, typer.Option(help="Only those of this account, by its id; for operators.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="Those that were removed instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List your nodes, newest first; an operator sees everybody's."""
    query = {"removed": str(removed).lower(), **({} if owner is None else {"owner": owner})}
    _print_nodes(as_operator().listed(_ROUTE, query, limit), as_json=as_json)


@app.command()
def show(node: Which, as_json: AsJson = False) -> None:
    """Show a node: its machine, its rules, and why it gets no work."""
    caller = as_operator()
    found = caller.ask("GET", f"{_ROUTE}/{_meant(caller, node)}")
    if as_json:
        print_json(found)
        return
    print_fields(_fields(found))
    _print_rest(found)


@app.command()
def history(
    node: Which, limit: Annotated[int, typer.Option(min=1, max=10_000)] = _HISTORY, as_json: AsJson = False
) -> None:
    """What happened to a node, newest first."""
    caller = as_operator()
    found = caller.listed(f"{_ROUTE}/{_meant(caller, node)}/history", {}, limit)
    if as_json:
        print_json(found)
        return
    for event in found:
        print_line(f"{moment(event['at'])}  {event['kind']:<24}  {_told(event['body'])}")


@app.command()
def watch(as_json: AsJson = False) -> None:
    """Follow what happens to your nodes, until Ctrl-C. On a terminal their list is drawn anew at each change."""
    caller = as_operator()

    def redraw() -> None:
        sys.stdout.write("\x1b[H\x1b[2J")
        _print_nodes(caller.listed(_ROUTE, {}, 500), as_json=False)

    follow(caller, as_json=as_json, redraw=redraw if sys.stdout.isatty() and not as_json else None)


@app.command()
def rename(
    node: Which, name: Annotated[str, typer.Argument(help="What it will be called.")], as_json: AsJson = False
) -> None:
    """Give a node another name."""
    caller = as_operator()
    found = caller.ask("PATCH", f"{_ROUTE}/{_meant(caller, node)}", {"name": name})
    report(f"The node is called {found['name']} now.", found, as_json=as_json)


@app.command()
def rules(
    node: Which,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RULE=VALUE]...", help="Rules to change, such as price=1.25; `price=` takes one away."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a node's rules, or change some: price, minimum_price, windows, only_when_idle, power_limit_w,
    temperature_limit_c, labels, region, work. Lists and objects are written as JSON."""
    caller = as_operator()
    path = f"{_ROUTE}/{_meant(caller, node)}"
    wishes = dict(_wish(change) for change in changes or ())
    found = caller.ask("PUT", f"{path}/rules", wishes) if wishes else caller.ask("GET", path)
    if as_json:
        print_json(found["rules"])
    else:
        _print_rules(found["rules"])


@app.command()
def drain(node: Which, as_json: AsJson = False) -> None:
    """Let a node finish what it has, and give it no more."""
    _do(node, "drain", "finishes what it has and gets no more", as_json=as_json)


@app.command()
def pause(node: Which, as_json: AsJson = False) -> None:
    """Stop a node's work at once."""
    _do(node, "pause", "is paused", as_json=as_json)


@app.command()
def resume(node: Which, as_json: AsJson = False) -> None:
    """Let a node work again that was paused or drained."""
    _do(node, "resume", "may work again", as_json=as_json)


@app.command()
def suspend(node: Which, reason: Why, as_json: AsJson = False) -> None:
    """Keep a node from work, as an operator. It stays connected."""
    _do(node, "suspend", "is suspended", {"reason": reason}, as_json=as_json)


@app.command()
def unsuspend(node: Which, reason: Why, as_json: AsJson = False) -> None:
    """Let a suspended node work again, as an operator."""
    _do(node, "unsuspend", "is no longer suspended", {"reason": reason}, as_json=as_json)


@app.command()
def remove(node: Which, reason: Why = "", as_json: AsJson = False) -> None:
    """Remove a node for good: its link is closed, and the machine can only join anew."""
    caller = as_operator()
    found = caller.ask("DELETE", f"{_ROUTE}/{_meant(caller, node)}", query={"reason": reason})
    report(f"{found['name']} is removed from the pool.", found, as_json=as_json)


def _do(node: str, what: str, done: str, body: dict[str, object] | None = None, *, as_json: bool) -> None:
    caller = as_operator()
    found = caller.ask("POST", f"{_ROUTE}/{_meant(caller, node)}/{what}", body)
    report(f"{found['name']} {done}.", found, as_json=as_json)


def _meant(caller: SignedIn, text: str) -> str:
    """The id of the one node that is meant. A name may be that of several, and a guess could stop the wrong one."""
    try:
        return str(UUID(text))
    except ValueError:
        found = caller.listed(_ROUTE, {"name": text}, 2)
    if not found:
        raise Declined("There is no node with this name: `tidemill nodes list` lists them.")
    if len(found) > 1:
        raise Declined("Several nodes have this name: say which by its id, which `tidemill nodes list` shows.")
    return str(found[0]["id"])


def _wish(change: str) -> tuple[str, object]:
    name, equals, value = change.partition("=")
    if not equals:
        raise Declined(f"Write a rule as {change}=VALUE, or as {change}= to take it away.")
    if not value:
        return name, None
    if name in _TEXTS:
        return name, value
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        raise Declined(f'Write {name} as JSON, such as power_limit_w=300 or labels=["rack=7"].') from None


def _print_nodes(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_table(_COLUMNS, [_row(node) for node in found])


def _row(node: dict[str, Any]) -> tuple[str, ...]:
    how = (node["life"], " ".join(node["conditions"]), _devices(node["devices"]))
    return node["id"], node["name"], *how, node["agent"].removeprefix("tidemill/"), moment(node["heard_at"])


def _devices(devices: list[dict[str, Any]]) -> str:
    names = [device["model"] or device["name"] for device in devices]
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _fields(node: dict[str, Any]) -> dict[str, str]:
    fields = {
        "node": node["id"],
        "name": node["name"],
        "owner": node["account_id"] + (" (the pool's own machine)" if node["house"] else ""),
        "life": node["life"],
        "conditions": " ".join(node["conditions"]),
        "agent": node["agent"] + ("" if node["version_accepted"] else " (too old to get work)"),
        "joined": moment(node["joined_at"]),
        "last heard": moment(node["heard_at"]),
        "linked since": moment(node["linked_at"]),
        "suspended": node["suspended_reason"] or "",
        "removed": " ".join(part for part in (moment(node["removed_at"]), node["removed_reason"] or "") if part),
    }
    return {name: value for name, value in fields.items() if value}


def _print_rest(node: dict[str, Any]) -> None:
    for device in node["devices"]:
        failing = f"  failing: {device['failing']}" if device["failing"] else ""
        print_line(f"device {device['index']}  {device['name']}  {device['memory_mib']} MiB{failing}")
    _print_rules(node["rules"])
    for alert in node["alerts"]:
        print_line(f"alert {alert['kind']}  since {moment(alert['since'])}  {alert['sentence']}")
    for reason in node["no_work"]:
        print_line(f"no work ({reason['code']})  {reason['sentence']}")


def _print_rules(book: dict[str, Any]) -> None:
    for name, entry in book.items():
        value = entry["value"] if isinstance(entry["value"], str) else json.dumps(entry["value"])
        print_line(f"rule {name}  {value}  (set in the {entry['place']} by {entry['by']})")


def _told(body: dict[str, Any]) -> str:
    return "  ".join(f"{name}={value}" for name, value in body.items() if name not in ("account_id", "node_id"))
