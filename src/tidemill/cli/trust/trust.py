"""`tidemill trust`: results about which an operator is asked. The commands use the database directly."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Annotated

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, operator_name, running_urls
from tidemill.cli.client.local_references import meant
from tidemill.cli.client.references import BY_ID
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.clock import as_datetime
from tidemill.core.ids import Ids, short_id
from tidemill.core.references import ObjectKind
from tidemill.core.refusals import Refusal
from tidemill.core.trust.reviews import ReviewDecision
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.trust import reviews as stored_reviews
from tidemill.store.trust.reviews import Review

app = CommandGroup("On this machine's pool, decide what nobody else can.")

SHOWN_MAX = 1_000

Which = Annotated[str, typer.Argument(metavar="ATTEMPT", help=f"The attempt whose result waits: {BY_ID}.")]
Verdict = Annotated[ReviewDecision, typer.Argument(metavar="VERDICT", help="pass: it is paid; fail: it is wrong.")]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and the node's owner sees it.")]


@app.command()
def reviews(as_json: AsJson = False) -> None:
    """Right results with times that cannot be true: nobody is paid for them before you have decided."""
    waiting = asyncio.run(_listed())
    if as_json:
        print_json([_fields(review) for review in waiting])
    elif not waiting:
        print_line("No result waits for a decision.")
    else:
        rows = [(short_id(one.attempt_id), short_id(one.node_id), _time(one), one.doubt) for one in waiting]
        print_table(("attempt", "node", "since", "doubt"), rows)


@app.command()
def decide(attempt: Which, verdict: Verdict, reason: Why, as_json: AsJson = False) -> None:
    """Decide whether a result is paid. One that fails counts as wrong, and another node tries."""
    decided = asyncio.run(_decide(attempt, verdict, reason))
    sentence = "It will be paid." if verdict is ReviewDecision.PASS else "It will not be paid, and another node tries."
    report(sentence, _fields(decided) | {"verdict": verdict.value}, as_json=as_json)


async def _listed() -> Sequence[Review]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        return await stored_reviews.listed(connection, None, SHOWN_MAX)


async def _decide(attempt: str, verdict: ReviewDecision, reason: str) -> Review:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        now, by = await read_clock(connection), operator_name()
        attempt_id = await meant(connection, ObjectKind.REVIEW, attempt)
        async with connection.transaction():
            decided = await stored_reviews.decide(
                connection, attempt_id, verdict, reason=reason, by=by, ids=Ids(secrets.randbits), now=now
            )
        if isinstance(decided, Refusal):
            raise CommandRefused(decided.sentence)
        await events.wake(connection)
        return decided


def _time(review: Review) -> str:
    return f"{as_datetime(review.asked_at):%Y-%m-%d %H:%M:%S}"


def _fields(review: Review) -> dict[str, object]:
    return {
        "attempt_id": str(review.attempt_id),
        "node_id": str(review.node_id),
        "owner_id": str(review.owner_id),
        "customer_id": str(review.customer_id),
        "job_id": str(review.job_id),
        "task_id": str(review.task_id),
        "doubt": review.doubt,
        "asked_at": as_datetime(review.asked_at).isoformat(),
    }
