"""`tidemill nodes`: the machines that you have in the pool; and, for operators, everybody's.

It asks the pool over HTTP. Commands for the machine itself are in `agent`.
"""

import sys
from typing import Annotated

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import NodeReference, OwnerOption, at
from tidemill.cli.jobs.explanation_view import print_considered
from tidemill.cli.nodes import join_tokens
from tidemill.cli.nodes.node_view import NONE_YET, print_node, print_nodes, rule_rows
from tidemill.cli.nodes.node_watch import follow
from tidemill.cli.nodes.rule_words import EXAMPLES, NAMES, wish
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, print_fields, print_json, print_text, report
from tidemill.core.events.node_sentences import sentence
from tidemill.core.ids import with_short_ids
from tidemill.host.standard_error import say

app = CommandGroup("Your machines in the pool.\n\nWhat is done on a machine itself is in `tidemill agent`.")
app.add_typer(join_tokens.app, name="tokens")

Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and the owner can read it.")]

_ROUTE = "/nodes"
_HISTORY = 20
_WATCHED = 500


@app.command("list")
def list_nodes(
    owner: OwnerOption = None,
    removed: Annotated[bool, typer.Option("--removed", help="Those that were removed instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List your nodes, newest first; an operator sees everybody's."""
    query = {"removed": str(removed).lower(), **({} if owner is None else {"owner": owner})}
    none = "No node was removed." if removed else NONE_YET
    print_nodes(pool_caller().listed(_ROUTE, query, limit), as_json=as_json, none=none)


@app.command()
def show(node: NodeReference, as_json: AsJson = False) -> None:
    """Show a node: its machine, what was measured of it, its rules, alerts, and why it gets no work."""
    caller = pool_caller()
    view = caller.ask("GET", at(_ROUTE, node))
    if as_json:
        print_json(view)
    else:
        print_node(view)


@app.command()
def history(
    node: NodeReference,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = _HISTORY,
    as_json: AsJson = False,
) -> None:
    """What happened to a node, newest first; times are UTC."""
    caller = pool_caller()
    events = caller.listed(at(_ROUTE, node, "history"), {}, limit)
    if as_json:
        print_json(events)
        return
    for event in events:
        print_text(with_short_ids(f"{moment(event['at'])}  {sentence(event)}"))


@app.command()
def why(node: NodeReference, as_json: AsJson = False) -> None:
    """What a node was considered for lately, and why it lost; times are UTC."""
    caller = pool_caller()
    considered = caller.ask("GET", at(_ROUTE, node, "considered"))
    if as_json:
        print_json(considered["items"])
    else:
        print_considered(considered["items"])


@app.command()
def watch(as_json: AsJson = False) -> None:
    """Follow what happens to your nodes, until Ctrl-C. On a terminal their list is drawn anew at each change."""
    caller = pool_caller()

    def redraw() -> None:
        sys.stdout.write("\x1b[H\x1b[2J")
        print_nodes(caller.listed(_ROUTE, {}, _WATCHED), as_json=False)

    follow(caller, as_json=as_json, redraw=redraw if sys.stdout.isatty() and not as_json else None)


@app.command()
def rename(
    node: NodeReference, name: Annotated[str, typer.Argument(help="What it will be called.")], as_json: AsJson = False
) -> None:
    """Give a node another name."""
    caller = pool_caller()
    view = caller.ask("PATCH", at(_ROUTE, node), {"name": name})
    report(f"The node is called {view['name']} now.", view, as_json=as_json)


@app.command()
def rules(
    node: NodeReference,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RULE=VALUE]...", help=f"Of {NAMES}, such as {EXAMPLES}, or as JSON; `price=` takes a rule away."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a node's rules, or change some, all of them or none."""
    caller = pool_caller()
    path = at(_ROUTE, node)
    wishes = dict(wish(change) for change in changes or ())
    view = caller.ask("PUT", f"{path}/rules", wishes) if wishes else caller.ask("GET", path)
    if as_json:
        print_json(view["rules"])
    elif rows := dict(rule_rows(view)):
        print_fields(rows)
    else:
        say("No rules are set: `tidemill nodes rules NODE price=1.5` sets one.")


@app.command()
def drain(node: NodeReference, as_json: AsJson = False) -> None:
    """Let a node finish what it has, and give it no more."""
    _do(node, "drain", "finishes what it has and gets no more", as_json=as_json)


@app.command()
def pause(node: NodeReference, as_json: AsJson = False) -> None:
    """Stop a node's work at once."""
    _do(node, "pause", "is paused", as_json=as_json)


@app.command()
def resume(node: NodeReference, as_json: AsJson = False) -> None:
    """Let a node work again that was paused or drained."""
    _do(node, "resume", "may work again", as_json=as_json)


@app.command()
def suspend(node: NodeReference, reason: Why, as_json: AsJson = False) -> None:
    """Keep a node from work, as an operator. It stays connected."""
    _do(node, "suspend", "is suspended", {"reason": reason}, as_json=as_json)


@app.command()
def unsuspend(node: NodeReference, reason: Why, as_json: AsJson = False) -> None:
    """Let a suspended node work again, as an operator."""
    _do(node, "unsuspend", "is no longer suspended", {"reason": reason}, as_json=as_json)


@app.command()
def remove(node: NodeReference, reason: Why = "", as_json: AsJson = False) -> None:
    """Remove a node for good: its link is closed, and the machine can only join anew."""
    caller = pool_caller()
    view = caller.ask("DELETE", at(_ROUTE, node), query={"reason": reason})
    report(f"{view['name']} is removed from the pool.", view, as_json=as_json)


def _do(node: str, action: str, result: str, body: dict[str, object] | None = None, *, as_json: bool) -> None:
    caller = pool_caller()
    view = caller.ask("POST", at(_ROUTE, node, action), body)
    report(f"{view['name']} {result}.", view, as_json=as_json)
