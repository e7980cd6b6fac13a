"""Idempotency-Key: a POST that is sent again gets the answer it got, and has no second effect."""

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.responses import Response

from tidemill.control.context import CallerPart, ControlPart
from tidemill.control.http.guard import limited
from tidemill.control.http.problems import RouteRefused
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.accounts.roles import Caller
from tidemill.core.clock import Instant
from tidemill.store.operations import idempotent_answers
from tidemill.store.operations.idempotent_answers import AnswerRefusal, AnswerScope, HttpAnswer
from tidemill.store.query import Connection

_KEY = re.compile(r"[\x21-\x7e]{1,255}")

AnswerEffect = Callable[[Connection, Instant], Awaitable[HttpAnswer]]


class Idempotency:
    """Runs an effect in one transaction together with the memory of its answer."""

    def __init__(self, control: ControlPart, caller: Caller, scope: AnswerScope | None) -> None:
        self._control = control
        self._caller = caller
        self._scope = scope

    async def answer(self, effect: AnswerEffect) -> Response:
        now = self._control.clock.now()
        async with self._control.route_database.transaction() as transaction:
            kept = await idempotent_answers.take_scope(transaction, self._scope, now) if self._scope else None
            if isinstance(kept, AnswerRefusal):
                raise RouteRefused(kept)
            if kept:
                return _response(kept, {"Idempotency-Replayed": "true"})
            answer = await effect(transaction, now)
            if self._scope:
                await self._count(answer)
                await idempotent_answers.keep(transaction, self._scope, answer)
        return _response(answer, {})

    async def _count(self, answer: HttpAnswer) -> None:
        """Count what is kept for the account; operators' answers are the pool's own."""
        if not self._caller.is_operator:
            limit, cost = self._control.limits.answers, len(answer.content) // 1024 + 1
            whose, refusal = self._caller.account_bucket, RequestRefusal.TOO_MANY_ANSWERS
            await limited(self._control, limit, whose, cost=cost, refusal=refusal)


async def _once(
    request: Request,
    control: ControlPart,
    caller: CallerPart,
    idempotency_key: Annotated[
        str | None,
        Header(description="Any unique text, 1 to 255 visible characters. Sent again, the answer is the same."),
    ] = None,
) -> Idempotency:
    if idempotency_key is None:
        return Idempotency(control, caller, None)
    if not _KEY.fullmatch(idempotency_key):
        raise RouteRefused(RequestRefusal.IDEMPOTENCY_KEY_MALFORMED)
    body_sha256 = hashlib.sha256(await request.body()).digest()
    route = f"{request.method} {request.url.path}"
    return Idempotency(control, caller, AnswerScope(caller.name, route, idempotency_key, body_sha256))


def _response(answer: HttpAnswer, headers: dict[str, str]) -> Response:
    return Response(answer.content, answer.status, headers, media_type="application/json")


IdempotencyPart = Annotated[Idempotency, Depends(_once)]
