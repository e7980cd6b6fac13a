"""A registry for second links: an agent that shows a ticket of the pool comes in, without a database.

A ticket is used once in a process; used ones are remembered until they expire, and only the pool can make them, so
that memory is bounded by what it makes in a minute or two. Second links carry channels: reports belong to the first.
"""

from collections import deque
from collections.abc import Sequence
from itertools import count
from uuid import UUID

import structlog

from tidemill.core.clock import Clock, Instant
from tidemill.link.held.registry import (
    AdmissionDenial,
    AdmissionGrant,
    AgentCall,
    BeatArrival,
    LinkGeneration,
    Misreport,
    ReportsAnswer,
    ReportsArrival,
    Supersession,
)
from tidemill.wire.tickets import TicketGrant, TicketRefusal, check

log = structlog.get_logger()

_NO_TICKET = AdmissionDenial("ticket_missing", "This door opens to tickets only: ask the pool for one.")
_USED = AdmissionDenial("ticket_used", "The ticket was used before: ask the pool for a new one.")


class TicketRegistry:
    """Lets in agents that have a ticket of the pool for this door."""

    def __init__(self, clock: Clock, *, pool_key: bytes, audience: str, audience_key: bytes) -> None:
        self._clock = clock
        self._pool_key = pool_key
        self._audience = audience
        self._audience_key = audience_key
        self._used: set[bytes] = set()
        self._expiring: deque[tuple[Instant, bytes]] = deque()
        self._generations = count(1)

    async def admit(self, callers: Sequence[AgentCall]) -> Sequence[AdmissionGrant | AdmissionDenial]:
        now = self._clock.now()
        self._forget(now)
        return [self._admit(caller, now) for caller in callers]

    async def heard(self, beats: Sequence[BeatArrival], links: Sequence[LinkGeneration]) -> Sequence[Supersession]:
        """Do nothing: a node's first link shows whether it is alive."""
        return ()

    async def reported(self, arrivals: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        return [
            Misreport(arrival.link, "no_reports_here", "Reports go to the pool's own link.") for arrival in arrivals
        ]

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        """Do nothing: a link leaves nothing behind but its used ticket."""

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        log.info("link refused", code=code, address=address, node_id=str(node_id) if node_id else None)

    def _admit(self, caller: AgentCall, now: Instant) -> AdmissionGrant | AdmissionDenial:
        hello = caller.hello
        if hello.node_id is None or hello.join_token is None:
            return _NO_TICKET
        grant = TicketGrant(hello.node_id, hello.key, self._audience, self._audience_key)
        ticket = check(hello.join_token, grant, self._pool_key, now)
        if isinstance(ticket, TicketRefusal):
            return AdmissionDenial(ticket.code, ticket.value)
        if ticket.number in self._used:
            return _USED
        self._used.add(ticket.number)
        self._expiring.append((ticket.expires_at, ticket.number))
        return AdmissionGrant(LinkGeneration(UUID(bytes=hello.node_id), next(self._generations)), received=0)

    def _forget(self, now: Instant) -> None:
        """Forget expired tickets. One that is queued behind a later one is kept a little longer than needed."""
        while self._expiring and self._expiring[0][0] <= now:
            self._used.discard(self._expiring.popleft()[1])
