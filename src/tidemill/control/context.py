"""What a route is given: the parts of its control process, and the caller."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Query, Request

from tidemill.artefacts.store import ArtefactStore
from tidemill.control.accounts.access_tokens import AccessTokens
from tidemill.control.accounts.callers import Callers
from tidemill.control.accounts.passwords import Passwords
from tidemill.control.events.feed import EventFeed
from tidemill.control.http.denials import Denials
from tidemill.control.http.limiter import Limiter
from tidemill.control.http.limits import CallerLimits
from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.jobs.pricing_queue import PricingQueue
from tidemill.control.loops.frame import LoopRunner
from tidemill.control.nodes.node_registry import LinkRefusals
from tidemill.control.parts import Parts
from tidemill.control.placement.supply_cache import SupplyCache
from tidemill.control.trust.check_processes import CheckProcesses
from tidemill.core.accounts.roles import STRANGER, Caller
from tidemill.core.accounts.sessions import USER_AGENT_MAX, SessionOrigin, SessionRules
from tidemill.core.clock import SECOND
from tidemill.core.jobs.results import ReaderKey
from tidemill.core.notices.mail.letters import one_line
from tidemill.link.held.server import Links
from tidemill.store.database import Database
from tidemill.store.operations import pool


@dataclass(frozen=True)
class BackupTarget:
    """Where backups of this pool go, and as which role they are made."""

    owner_url: str
    folder: Path


@dataclass(kw_only=True)
class Control(Parts):
    """A control process as its routes see it. They use the connections of `route_database`.

    `streams` counts the event streams that are open, by who reads them.
    `draining` is set once the process has been told to stop. `verification` opens private results,
    `checks` are the processes that check results, `policies` the names that orders may choose.
    """

    route_database: Database
    feed: EventFeed
    limiter: Limiter
    limits: CallerLimits
    passwords: Passwords
    tokens: AccessTokens
    callers: Callers
    session_rules: SessionRules
    denials: Denials
    links: Links
    attempt_reports: AttemptReportIntake
    link_refusals: LinkRefusals
    artefacts: ArtefactStore
    verification: ReaderKey
    pricing: PricingQueue
    checks: CheckProcesses
    policies: frozenset[str]
    backups: BackupTarget | None = None
    supply: SupplyCache = field(default_factory=SupplyCache)
    streams: Counter[str] = field(default_factory=Counter)
    runners: list[LoopRunner] = field(default_factory=list)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    _set_up: bool = False

    @property
    def fresh_us(self) -> int:
        """For how long a typed password is fresh."""
        return int(self.settings.login.fresh_s * SECOND)

    async def is_set_up(self) -> bool:
        """Whether the first operator has set the pool up; once it is, it stays so."""
        if not self._set_up:
            async with self.route_database.connection() as connection:
                self._set_up = (await pool.state(connection)).set_up
        return self._set_up


# Dependencies are coroutines, though none of them waits: FastAPI runs plain functions in a thread.
async def _control(request: Request) -> Control:
    control: Control = request.app.state.control
    return control


async def _caller(request: Request) -> Caller:
    """The caller that the guard has let in."""
    caller: Caller = request.scope.get("caller", STRANGER)
    return caller


def address_of(request: Request) -> str:
    """The peer's address, or what a trusted proxy says of it."""
    client = request.scope.get("client")
    return client[0] if client else ""


def device_of(request: Request) -> SessionOrigin:
    """Where a request comes from."""
    return SessionOrigin(address_of(request), one_line(request.headers.get("user-agent", ""))[:USER_AGENT_MAX])


async def _device(request: Request) -> SessionOrigin:
    return device_of(request)


ControlPart = Annotated[Control, Depends(_control)]


async def _page_limit(control: ControlPart, limit: Annotated[int | None, Query(ge=1)] = None) -> int:
    return min(limit or control.settings.http.page_limit_default, control.settings.http.page_limit_max)


CallerPart = Annotated[Caller, Depends(_caller)]
DevicePart = Annotated[SessionOrigin, Depends(_device)]
PageLimit = Annotated[int, Depends(_page_limit)]
"""The most rows of a page: what the caller asks for with `limit`, within the pool's bounds."""
