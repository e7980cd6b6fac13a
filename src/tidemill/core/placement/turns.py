"""Whose turn it is: higher priorities first, the old before the new, and nobody crowds out the others.

A request gains a level with every so much time it waits, so nothing starves. Within a level, customers take turns by
what they were served: whoever has had least is next, and what is about to be placed counts at once. Of one customer,
the oldest request comes first.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.demand import WHOLE_MILLI, Demand

AGEING_US = 600 * SECOND
"""Waiting so long is worth one level of priority."""

NOTHING = 1e-6
"""Less than the smallest share that a task has."""

_NOBODY = UUID(int=0)


def level(request: Demand, now: Instant, ageing_us: int = AGEING_US) -> int:
    """Its priority, and what it has gained by waiting."""
    return int(request.priority) + max(0, now - request.submitted_at) // ageing_us


def share_of(request: Demand) -> float:
    """What a request counts for its customer; one that asks for the processor only counts little."""
    return max(request.asked_milli, 1) / WHOLE_MILLI


class DevicesAtWork:
    """How many devices each customer has now."""

    def __init__(self) -> None:
        self.devices: dict[UUID, float] = {}

    def begin(self, request: Demand) -> None:
        """Something was placed."""
        customer_id = request.customer_id or _NOBODY
        self.devices[customer_id] = self.devices.get(customer_id, 0.0) + share_of(request)

    def end(self, request: Demand) -> None:
        """It is at work no more. Who has nothing at work is forgotten, however many come and go."""
        customer_id = request.customer_id or _NOBODY
        left = self.devices[customer_id] - share_of(request)
        if left < NOTHING:
            del self.devices[customer_id]
        else:
            self.devices[customer_id] = left


def in_turn(
    requests: Iterable[Demand], served: Mapping[UUID, float], now: Instant, ageing_us: int = AGEING_US
) -> list[Demand]:
    """The order in which requests are placed. `served` is what each customer had lately, in device-seconds or any other
    unit in which one device of a request counts 1."""
    levels: dict[int, list[Demand]] = {}
    for request in requests:
        levels.setdefault(level(request, now, ageing_us), []).append(request)
    had = dict(served)
    return [request for high in sorted(levels, reverse=True) for request in _fairly(levels[high], had)]


def _fairly(requests: Iterable[Demand], had: dict[UUID, float]) -> Iterable[Demand]:
    """Turn by turn, the oldest request of the customer who has had least; `had` grows with what is given."""
    waiting: dict[UUID, list[Demand]] = {}
    for request in sorted(requests, key=lambda one: one.submitted_at, reverse=True):
        waiting.setdefault(request.customer_id or _NOBODY, []).append(request)
    turns = [(had.get(customer, 0.0), customer.int, customer) for customer in waiting]
    heapify(turns)
    while turns:
        _, number, customer = heappop(turns)
        request = waiting[customer].pop()
        yield request
        had[customer] = had.get(customer, 0.0) + share_of(request)
        if waiting[customer]:
            heappush(turns, (had[customer], number, customer))
