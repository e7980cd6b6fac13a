"""Whose turn it is: higher priorities first, the old before the new, and no customer crowds out the others.

A demand gains a level for every so much time it waits, so none starves. Within a level, customers take turns by what
they were served: the one who has had least is next, among equals whoever was served longest ago, and placements about
to be made count at once. Of one customer, the oldest demand comes first. An audit takes the turn of the customer whose
result it checks.
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

REMEMBERED_MAX = 10_000
"""Of so many customers is remembered when they were served."""

_NOBODY = UUID(int=0)
_NEVER: Mapping[UUID, int] = {}


def level(demand: Demand, now: Instant, ageing_us: int = AGEING_US) -> int:
    """Its priority, and what it has gained by waiting."""
    return int(demand.priority) + max(0, now - demand.submitted_at) // ageing_us


def share_of(demand: Demand) -> float:
    """What a demand counts for its customer; one for the processor only counts little."""
    return max(demand.asked_milli, 1) / WHOLE_MILLI


def whose_turn(demand: Demand) -> UUID:
    return demand.audited_id or demand.customer_id or _NOBODY


class DevicesAtWork:
    """How many devices each customer has now, and who was served when: a larger number is later."""

    def __init__(self) -> None:
        self.devices: dict[UUID, float] = {}
        self.last_turns: dict[UUID, int] = {}
        self._turn = 0

    def begin(self, demand: Demand) -> None:
        """A demand was placed."""
        customer_id = whose_turn(demand)
        self.devices[customer_id] = self.devices.get(customer_id, 0.0) + share_of(demand)
        self._turn += 1
        self.last_turns.pop(customer_id, None)
        self.last_turns[customer_id] = self._turn
        if len(self.last_turns) > REMEMBERED_MAX:
            del self.last_turns[next(iter(self.last_turns))]

    def end(self, demand: Demand) -> None:
        """A demand has ended. A customer with nothing at work has no devices, however many come and go."""
        customer_id = whose_turn(demand)
        remaining = self.devices[customer_id] - share_of(demand)
        if remaining < NOTHING:
            del self.devices[customer_id]
        else:
            self.devices[customer_id] = remaining


def in_turn(
    demands: Iterable[Demand],
    served: Mapping[UUID, float],
    now: Instant,
    ageing_us: int = AGEING_US,
    last_turns: Mapping[UUID, int] = _NEVER,
) -> list[Demand]:
    """The order in which demands are placed. `served` is what each customer had lately, in device-seconds or any other
    unit in which one device of a demand counts 1; `last_turns` says who was served when."""
    levels: dict[int, list[Demand]] = {}
    for demand in demands:
        levels.setdefault(level(demand, now, ageing_us), []).append(demand)
    had = dict(served)
    return [demand for high in sorted(levels, reverse=True) for demand in _fairly(levels[high], had, last_turns)]


def _fairly(demands: Iterable[Demand], had: dict[UUID, float], last_turns: Mapping[UUID, int]) -> Iterable[Demand]:
    """Turn by turn, the oldest demand of the customer who has had least; `had` grows with each."""
    waiting: dict[UUID, list[Demand]] = {}
    for demand in sorted(demands, key=lambda waiting_demand: waiting_demand.submitted_at, reverse=True):
        waiting.setdefault(whose_turn(demand), []).append(demand)
    turns = [(had.get(customer, 0.0), last_turns.get(customer, 0), customer.int, customer) for customer in waiting]
    heapify(turns)
    while turns:
        _, last, number, customer = heappop(turns)
        demand = waiting[customer].pop()
        yield demand
        had[customer] = had.get(customer, 0.0) + share_of(demand)
        if waiting[customer]:
            heappush(turns, (had[customer], last, number, customer))
