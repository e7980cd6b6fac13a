"""`tidemill agent rules`: at which price, when, and up to which heat and power this machine works.

The owner can set the same rules in the pool. Of each rule the newest counts, wherever it was set.
"""

from typing import Annotated

import typer

from tidemill.agent.home.home import prepare
from tidemill.agent.home.rules_file import RulesFile
from tidemill.cli.agent.agent_home import agent_settings, member_home
from tidemill.cli.client.local_pool import operator_name
from tidemill.cli.nodes.rule_words import EXAMPLES, NAMES, wish
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table
from tidemill.core.clock import as_datetime
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleEntry, RuleOrigin, book_json
from tidemill.core.nodes.rules.rule_texts import written
from tidemill.core.refusals import Refusal
from tidemill.host.clocks import wall
from tidemill.host.standard_error import say

app = CommandGroup("The rules by which this machine works.")


@app.command()
def show(as_json: AsJson = False) -> None:
    """The rules that hold, and where they were set."""
    _print(RulesFile(member_home(agent_settings()).rules).read(), as_json=as_json)


@app.command("set")
def set_rules(
    rules: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE…",
            help=f"Of {NAMES}, such as {EXAMPLES}, or as JSON; `price=` takes a rule away.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Set rules, all of them or none."""
    wishes = dict(_wish(rule) for rule in rules)
    home = member_home(agent_settings())
    prepare(home)
    book = RulesFile(home.rules).change(wishes, by=operator_name(), now=wall())
    if isinstance(book, Refusal):
        raise CommandRefused(book.sentence)
    _print(book, as_json=as_json)


def _wish(rule: str) -> tuple[str, object]:
    name, value = wish(rule)
    if name == "work":
        raise CommandRefused("Use `tidemill agent drain`, `pause` or `resume` for this.")
    return name, value


def _print(book: RuleBook, *, as_json: bool) -> None:
    values = book_json(book)
    if as_json:
        print_json(values)
        return
    entries = [(name, entry) for name, entry in sorted(book.entries.items()) if entry.value is not None]
    if not entries:
        say("No rules are set: `tidemill agent rules set price=1.5` sets one.")
        return
    rows = [(name, written(name, values[name]["value"]), *_origin(entry)) for name, entry in entries]
    print_table(("rule", "value", "set", "at (UTC)"), rows)


def _origin(entry: RuleEntry) -> tuple[str, str]:
    """Where and when a rule was set, and by which user if it was set here. The pool's accounts mean nothing here."""
    origin = "in the pool" if entry.place is RuleOrigin.POOL else f"here by {entry.by}"
    return origin, f"{as_datetime(entry.at):%Y-%m-%d %H:%M:%S}"
