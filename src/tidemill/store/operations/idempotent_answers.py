"""Answers to requests with an Idempotency-Key: the same request again gets the same answer, and no second effect.

The key is scoped to caller, route and body, and is written in the effect's own transaction, so both are stored or
neither is. A refused request leaves nothing behind and may be tried again with the same key.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tidemill.core.clock import Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.refusals import Refusal
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query


class _AnswerRow(NamedTuple):
    body_sha256: bytes
    status: int
    content: bytes


_CLAIM = Query("operations/answer/claim", str)
_FIND = Query("operations/answer/find", _AnswerRow)
_KEEP = Query("operations/answer/keep")
_FORGET = Query("operations/answer/forget", str)


@dataclass(frozen=True)
class AnswerScope:
    """The caller, route, key and body of a request."""

    caller: str
    route: str
    key: str
    body_sha256: bytes


@dataclass(frozen=True)
class HttpAnswer:
    """An answer as it went out, to the byte."""

    status: int
    content: bytes


class AnswerRefusal(Refusal):
    IDEMPOTENCY_KEY_REUSED = "This Idempotency-Key was used for another request body: use a new key for a new request."


async def take_scope(transaction: Connection, scope: AnswerScope, now: Instant) -> HttpAnswer | AnswerRefusal | None:
    """The earlier answer; a refusal if the body differs; None if the key is now ours to answer."""
    whose = {"caller": scope.caller, "route": scope.route, "key": scope.key}
    if await _CLAIM.row(transaction, **whose, body_sha256=scope.body_sha256, now=now) is not None:
        return None
    given = await _FIND.row(transaction, **whose)
    if given is None:
        raise DatabaseFault("The answer to this Idempotency-Key is just being forgotten: try again.")
    if given.body_sha256 != scope.body_sha256:
        return AnswerRefusal.IDEMPOTENCY_KEY_REUSED
    return HttpAnswer(given.status, given.content)


async def keep(transaction: Connection, scope: AnswerScope, answer: HttpAnswer) -> None:
    await _KEEP.run(
        transaction,
        caller=scope.caller,
        route=scope.route,
        key=scope.key,
        status=answer.status,
        content=answer.content,
    )


async def forget(database: Database, given_before: Instant, limit: int) -> int:
    """Delete old answers. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, given_before=given_before, limit=limit))
