"""Follows what happens to nodes: prints each event as a line, or draws the list anew after an event.

It reads the log of events page by page, with the same session as every other command, for as long as it may.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.cli.terminal.output import print_json, print_text
from tidemill.core.events.node_sentences import NODE_KINDS, sentence
from tidemill.core.ids import with_short_ids

_POLL_S = 2.0
_NAMED = 10_000


def follow(caller: PoolCaller, *, as_json: bool, redraw: Callable[[], None] | None) -> None:
    """Follow until Ctrl-C. With `redraw` the list is drawn at once, and after each look that found events."""
    with suppress(KeyboardInterrupt):
        _, after = _news(caller, "recent")
        if redraw:
            redraw()
        while True:
            time.sleep(_POLL_S)
            events, after = _news(caller, after)
            if redraw and events:
                redraw()
            elif not redraw:
                _print(caller, events, as_json=as_json)


def _news(caller: PoolCaller, after: str) -> tuple[list[dict[str, Any]], str]:
    """The events of nodes after a cursor, and the cursor of the last page."""
    pages = list(_pages(caller, after))
    events = [event for page in pages for event in page["items"] if event["kind"].startswith(NODE_KINDS)]
    return events, pages[-1]["after"]


def _pages(caller: PoolCaller, after: str) -> Iterator[dict[str, Any]]:
    has_more = True
    while has_more:
        page = caller.ask("GET", "/events", query={"after": after, "limit": "500"})
        after, has_more = page["after"], page["has_more"]
        yield page


def _print(caller: PoolCaller, events: list[dict[str, Any]], *, as_json: bool) -> None:
    names = _names(caller) if events and not as_json else {}
    for event in events:
        if as_json:
            print_json(event)
        else:
            subject = event["subject"].removeprefix("node:")
            line = f"{moment(event['at'])}  {names.get(subject, subject)}  {sentence(event)}"
            print_text(with_short_ids(line))


def _names(caller: PoolCaller) -> dict[str, str]:
    """The names of nodes by their ids. A node that was removed meanwhile has none."""
    return {node["id"]: node["name"] for node in caller.listed("/nodes", {}, _NAMED)}
