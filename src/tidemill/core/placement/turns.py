"""Whose turn it is: higher priorities first, the old before the new, and no customer crowds out the others.

A demand gains a level for every so much time it waits, so none starves. Within a level, customers take turns by what
they were served: the one who has had least is next, and placements about to be made count at once. Of one customer, the
oldest demand comes first.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.demand import WHOLE_MILLI, Demand

AGEING_US = 600 * SECOND
"""Waiting so long is worth one level of priority."""

NOTHING = 1e-6
"""Less than the smallest share of a task."""

_NOBODY = UUID(int=0)


def level(demand: Demand, now: Instant, ageing_us: int = AGEING_US) -> int:
    """Its priority, and what it has gained by waiting."""
    return int(demand.priority) + max(0, now - demand.submitted_at) // ageing_us


def share_of(demand: Demand) -> float:
    """What a demand counts for its customer; one for the processor only counts little."""
    return max(demand.asked_milli, 1) / WHOLE_MILLI


class DevicesAtWork:
    """How many devices each customer has now."""

    def __init__(self) -> None:
        self.devices: dict[UUID, float] = {}

    def begin(self, demand: Demand) -> None:
        """A demand was placed."""
        customer_id = demand.customer_id or _NOBODY
        self.devices[customer_id] = self.devices.get(customer_id, 0.0) + share_of(demand)

    def end(self, demand: Demand) -> None:
        """A demand has ended. A customer with nothing at work is forgotten, however many come and go."""
        customer_id = demand.customer_id or _NOBODY
        remaining = self.devices[customer_id] - share_of(demand)
        if remaining < NOTHING:
            del self.devices[customer_id]
        else:
            self.devices[customer_id] = remaining


def in_turn(
    demands: Iterable[Demand], served: Mapping[UUID, float], now: Instant, ageing_us: int = AGEING_US
) -> list[Demand]:
    """The order in which demands are placed. `served` is what each customer had lately, in device-seconds or any other
    unit in which one device of a demand counts 1."""
    levels: dict[int, list[Demand]] = {}
    for demand in demands:
        levels.setdefault(level(demand, now, ageing_us), []).append(demand)
    had = dict(served)
    return [demand for high in sorted(levels, reverse=True) for demand in _fairly(levels[high], had)]


def _fairly(demands: Iterable[Demand], had: dict[UUID, float]) -> Iterable[Demand]:
    """Turn by turn, the oldest demand of the customer who has had least; `had` grows with each."""
    waiting: dict[UUID, list[Demand]] = {}
    for demand in sorted(demands, key=lambda waiting_demand: waiting_demand.submitted_at, reverse=True):
        waiting.setdefault(demand.customer_id or _NOBODY, []).append(demand)
    turns = [(had.get(customer, 0.0), customer.int, customer) for customer in waiting]
    heapify(turns)
    while turns:
        _, number, customer = heappop(turns)
        demand = waiting[customer].pop()
        yield demand
        had[customer] = had.get(customer, 0.0) + share_of(demand)
        if waiting[customer]:
            heappush(turns, (had[customer], number, customer))
