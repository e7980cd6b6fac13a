"""`tidemill events`: what has happened in the pool, and what happens now."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.output import AsJson, Declined, print_json, print_line
from tidemill.cli.pool import client, unreachable
from tidemill.cli.surroundings import load, running_urls
from tidemill.core.faults import NotRunning
from tidemill.core.settings import Settings

if TYPE_CHECKING:
    import httpx2


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep on showing new ones.")] = False,
    after: Annotated[str, typer.Option(help="Begin behind this cursor.")] = "start",
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most so many.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the pool's events, oldest first."""
    import httpx2

    settings = load().settings
    source = _followed(settings, after) if follow else _listed(settings, after)
    try:
        for shown, event in enumerate(source, start=1):
            _show(event, as_json)
            if shown == limit:
                return
    except httpx2.TransportError as error:
        raise unreachable(settings) from error


def _listed(settings: Settings, after: str) -> Iterator[dict[str, Any]]:
    headers = {"Accept": "application/json", **_authorisation(settings)}
    with client(settings) as http:
        more = True
        while more:
            page = _checked(http.get("/api/v1/events", params={"after": after, "limit": 500}, headers=headers)).json()
            yield from page["items"]
            after, more = page["after"], page["has_more"]


def _followed(settings: Settings, after: str) -> Iterator[dict[str, Any]]:
    """A stream that is ended, as by a restart, goes on where it was."""
    while True:
        for event in _streamed(settings, after):
            after = event["cursor"]
            yield event


def _streamed(settings: Settings, after: str) -> Iterator[dict[str, Any]]:
    headers = {"Accept": "text/event-stream", **_authorisation(settings)}
    with (
        client(settings, timeout_s=None) as http,
        http.stream("GET", "/api/v1/events", params={"after": after}, headers=headers) as response,
    ):
        if response.is_error:
            response.read()
        for line in _checked(response).iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def _authorisation(settings: Settings) -> dict[str, str]:
    """Whoever may read the pool's home is its operator; anybody else sees what is public.

    A pool that is down gets no token: somebody else may have taken its port.
    """
    try:
        running_urls(settings)
        return {"Authorization": f"Bearer {(settings.home / 'operator.token').read_text('ascii').strip()}"}
    except (NotRunning, OSError):
        return {}


def _checked(response: "httpx2.Response") -> "httpx2.Response":
    if response.is_error and "problem+json" in response.headers.get("content-type", ""):
        raise Declined(response.json()["detail"])
    if response.is_error or "x-request-id" not in response.headers:
        raise NotRunning(f"What answers at {response.url} is not Tidemill: check TIDEMILL_PORT.")
    return response


def _show(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(event)
        return
    body = "  ".join(f"{name}={value}" for name, value in event["body"].items() if f":{value}" not in event["subject"])
    print_line(f"{event['at'][:19].replace('T', ' ')}  {event['kind']:<20}  {event['subject']}  {body}")
