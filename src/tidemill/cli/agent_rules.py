"""`tidemill agent rules`: at which price, when, and up to which heat and power this machine works.

They are the same rules that the owner can set in the pool; of each the newest counts, wherever it was set.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from tidemill.agent.home import prepare
from tidemill.agent.rules_file import RulesFile
from tidemill.agent.times import wall
from tidemill.cli.agent_home import agent_settings, own_home
from tidemill.cli.output import AsJson, Declined, print_json, print_table
from tidemill.cli.surroundings import operator_name
from tidemill.core.clock import as_datetime
from tidemill.core.nodes.rule_book import RuleBook, shown
from tidemill.core.refusals import Refusal

app = typer.Typer(help="The rules by which this machine works.", no_args_is_help=True)

_WINDOW = re.compile(r"(?:(?P<days>[a-z+]+)/)?(?P<begins>[0-9:]+)[-–](?P<ends>[0-9:]+)")
_IDLE = re.compile(r"(?P<below_pct>[0-9]{1,3})%?/(?P<for_s>[0-9]{1,6})s?")


@app.command()
def show(as_json: AsJson = False) -> None:
    """The rules that were set, by whom and where."""
    _print(_file().read(), as_json=as_json)


@app.command("set")
def set_rules(
    rules: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE…",
            help="Of price, minimum_price, windows, only_when_idle, power_limit_w, temperature_limit_c, labels and "
            "region, such as price=1.5 windows=22:00-08:00,sat+sun/00:00-24:00 only_when_idle=10%/300s, or as JSON; "
            "`price=` takes a rule away.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Set rules, all of them or none."""
    wishes = dict(_wish(rule) for rule in rules)
    book = _file().change(wishes, by=operator_name(), now=wall())
    if isinstance(book, Refusal):
        raise Declined(book.sentence)
    _print(book, as_json=as_json)


def _wish(rule: str) -> tuple[str, object]:
    name, equals, value = rule.partition("=")
    if not equals or name == "work":
        raise Declined(
            "A rule is written NAME=VALUE, such as price=1.5; to rest, use `tidemill agent drain` or `pause`."
        )
    if not value:
        return name, None
    return name, _json(value) if value[0] in "[{" else _READ.get(name, str)(value)


def _json(value: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _windows(value: str) -> object:
    return [_matched(_WINDOW, one, _window) for one in value.split(",")]


def _window(parts: Mapping[str, str]) -> object:
    days = {"days": parts["days"].split("+")} if parts["days"] else {}
    return {"from": parts["begins"], "until": parts["ends"], **days}


def _idle(value: str) -> object:
    return _matched(_IDLE, value, lambda parts: {name: int(number) for name, number in parts.items()})


def _matched(pattern: re.Pattern[str], value: str, made: Callable[[Mapping[str, str]], object]) -> object:
    """What does not fit is passed on as it is: the rules themselves say what is wrong with it."""
    match = pattern.fullmatch(value)
    return made(match.groupdict()) if match else value


def _whole(value: str) -> object:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


def _labels(value: str) -> object:
    return value.split(",")


_READ: Mapping[str, Callable[[str], object]] = {
    "windows": _windows,
    "only_when_idle": _idle,
    "power_limit_w": _whole,
    "temperature_limit_c": _whole,
    "labels": _labels,
}


def _file() -> RulesFile:
    home = own_home(agent_settings())
    prepare(home)
    return RulesFile(home.rules)


def _print(book: RuleBook, *, as_json: bool) -> None:
    values = shown(book)
    if as_json:
        print_json(values)
        return
    rows = [
        (
            name,
            json.dumps(values[name]["value"], ensure_ascii=False),
            entry.by,
            entry.place.value,
            f"{as_datetime(entry.at):%Y-%m-%d %H:%M:%S}",
        )
        for name, entry in sorted(book.entries.items())
    ]
    print_table(("rule", "value", "by", "set on", "at"), rows)
