"""`tidemill events`: what has happened in the pool, and what happens now, as far as whoever asks may read it.

Strangers read what is public, and everybody what concerns them; operators read all of it.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import reader
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line
from tidemill.core.events.log import Cursor
from tidemill.core.events.sentences import sentence
from tidemill.core.faults import Fault, NotRunning
from tidemill.core.ids import with_short_ids
from tidemill.host.standard_error import printable

_PAGE = 500
_POLL_S = 2.0
"""Half as often as the least limit of requests allows, and often enough for a person who watches."""

_PATIENCE_S = 15.0
"""How long a reader waits for a pool that went away, as in a restart."""

_START = "start"


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep on showing new ones.")] = False,
    after: Annotated[str, typer.Option(help="Begin behind this cursor.")] = "start",
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most so many.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the pool's events in words, oldest first."""
    if after != _START and Cursor.parse(after) is None:
        raise CommandRefused(f"{after} is not a cursor: leave it out to begin at the start.")
    with suppress(KeyboardInterrupt):
        for count, event in enumerate(_read(after, follow=follow), start=1):
            if as_json:
                print_json(event)
            else:
                _print(event)
            if count == limit:
                return


def _read(after: str, *, follow: bool) -> Iterator[dict[str, Any]]:
    """The events behind a cursor; with `follow`, for ever, and on at the same cursor when the pool comes back."""
    ask, heard_at = reader(), time.monotonic()
    while True:
        try:
            page = ask("/events", {"after": after, "limit": str(_PAGE)})
        except Fault as fault:
            if not follow:
                raise
            if time.monotonic() - heard_at > _PATIENCE_S:
                raise NotRunning("The pool has stopped: start it with `tidemill up`, and follow again.") from fault
            time.sleep(_POLL_S)
            continue
        yield from page["items"]
        heard_at, after = time.monotonic(), page["after"]
        if page["has_more"]:
            continue
        if not follow:
            return
        time.sleep(_POLL_S)


def _print(event: dict[str, Any]) -> None:
    """One line an event. A terminal shows as much of it as one line takes; a file gets all of it."""
    words = sentence(event["kind"], event["body"])
    line = printable(with_short_ids(f"{moment(event['at'])[-14:]}  {words}")).replace("\n", " ")
    width = shutil.get_terminal_size().columns
    print_line(line if not sys.stdout.isatty() or len(line) <= width else line[: width - 1] + "…")
