"""Limits that a route checks itself, besides the one on every request: on what costs the pool or others much."""

from tidemill.control.context import Control
from tidemill.control.http.problems import RouteRefused
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.rate_limits import Limit, address_key
from tidemill.core.refusals import Refusal


async def limited_by_address(control: Control, limit: Limit, device: SessionOrigin) -> None:
    """Take one from the limit of the device's address, or refuse."""
    await limited(control, limit, address_key(device.address))


async def limited(
    control: Control, limit: Limit, whose: str, *, cost: int = 1, refusal: Refusal = RequestRefusal.RATE_LIMITED
) -> None:
    """Take from a limit, or refuse. What costs more than the whole limit takes all of it."""
    allowance = await control.limiter.allowed(whose, limit, min(cost, limit.count))
    if not allowance.allowed:
        raise RouteRefused(refusal, allowance.retry_after_s)
