"""What a route is given: one control process's parts, and who is asking."""

import asyncio
import hmac
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Query, Request

from tidemill.control.feed import EventFeed
from tidemill.control.loops.frame import LoopRunner
from tidemill.control.parts import Parts
from tidemill.control.problems import Refused, RequestRefusal
from tidemill.core.events import Reader
from tidemill.store.database import Database


@dataclass(kw_only=True)
class Control(Parts):
    """A control process as its routes see it. They use the connections kept for `requests`.

    `draining` is set once the process has been told to stop.
    """

    requests: Database
    feed: EventFeed
    operator_token: str
    streams: int = 0
    runners: list[LoopRunner] = field(default_factory=list)
    draining: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Caller:
    """Who asks. `name` is what audits and idempotency keys know them by."""

    name: str
    reader: Reader


STRANGER = Caller("stranger", Reader())
OPERATOR = Caller("operator", Reader(operator=True))


def _control(request: Request) -> Control:
    control: Control = request.app.state.control
    return control


def _caller(request: Request) -> Caller:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if not scheme:
        return STRANGER
    known = _control(request).operator_token.encode()
    if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), known):
        raise Refused(RequestRefusal.TOKEN_WRONG)
    return OPERATOR


def _operator(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller is STRANGER:
        raise Refused(RequestRefusal.UNAUTHENTICATED)
    if not caller.reader.operator:
        raise Refused(RequestRefusal.OPERATOR_ONLY)
    return caller


ControlPart = Annotated[Control, Depends(_control)]


def _page_limit(control: ControlPart, limit: Annotated[int | None, Query(ge=1)] = None) -> int:
    return min(limit or control.settings.http.page_limit_default, control.settings.http.page_limit_max)


AnyCaller = Annotated[Caller, Depends(_caller)]
Operator = Annotated[Caller, Depends(_operator)]
PageLimit = Annotated[int, Depends(_page_limit)]
"""The most rows of a page: what the caller asks for with `limit`, within the pool's bounds."""
