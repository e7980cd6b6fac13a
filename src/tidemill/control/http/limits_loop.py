"""Gives back unused leases of limits, so that other processes can give the tokens to their callers."""

from tidemill.control.http.limiter import Limiter
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant


class LimitsLoop(Loop):
    """Gives back tokens that this process has leased and not used within a second."""

    name = "limits"
    needs_trusted_clock = False

    def __init__(self, parts: Parts, limiter: Limiter) -> None:
        super().__init__(parts, every_s=1.0)
        self._limiter = limiter

    async def tick(self, now: Instant) -> Tick:
        given_back = await self._limiter.give_back(now)
        return Tick(seen=given_back, applied=given_back)
