"""How much of the house one customer's audits may have at once, so that nobody's results wait for another's.

An audit takes as long as the task that it checks, and a customer's own program may take long and never come to the same
result. So of what other customers' audits leave of the house, one customer's have a share; but one of them is always
allowed. What is left over is there for whoever comes next: two who want everything leave a quarter.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.demand import WHOLE_MILLI, Demand

_Amounts: TypeAlias = tuple[int, int, int]
"""Of devices, in thousandths; of cores, in thousandths; of memory, in MiB."""

_NOTHING: _Amounts = (0, 0, 0)


class HouseSize(NamedTuple):
    """All that the house nodes have together."""

    amounts: _Amounts = _NOTHING

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "HouseSize":
        devices = cpu_milli = memory_mib = 0
        for candidate in candidates:
            devices += WHOLE_MILLI * len(candidate.devices)
            cpu_milli += candidate.cpu_milli
            memory_mib += candidate.memory_mib
        return cls((devices, cpu_milli, memory_mib))


class AuditsAtWork:
    """What the audits of each customer have of the house now."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._all = _NOTHING
        self._by_customer: dict[UUID, tuple[int, _Amounts]] = {}
        """How many audits, and what they have."""

    def begin(self, demand: Demand) -> None:
        """An audit was placed."""
        self._count(demand, 1)

    def end(self, demand: Demand) -> None:
        """An audit has left its node. A customer with none at work is forgotten."""
        self._count(demand, -1)

    def has_room(self, demand: Demand, house: HouseSize) -> bool:
        """Whether this audit's customer may have it placed now."""
        count, held = self._by_customer.get(_customer(demand), (0, _NOTHING))
        if not count:
            return True
        return all(
            mine + needed <= self._share * (there - (everybody - mine))
            for mine, needed, everybody, there in zip(held, _amounts(demand), self._all, house.amounts, strict=True)
            if needed
        )

    def _count(self, demand: Demand, number: int) -> None:
        customer_id, amounts = _customer(demand), _amounts(demand)
        count, held = self._by_customer.get(customer_id, (0, _NOTHING))
        self._all = _added(self._all, amounts, number)
        if count + number:
            self._by_customer[customer_id] = (count + number, _added(held, amounts, number))
        else:
            del self._by_customer[customer_id]


def _customer(demand: Demand) -> UUID:
    assert demand.audited_id is not None, "only audits are counted"
    return demand.audited_id


def _amounts(demand: Demand) -> _Amounts:
    return demand.asked_milli, demand.cpu_milli, demand.memory_mib


def _added(amounts: _Amounts, more: _Amounts, number: int) -> _Amounts:
    devices, cpu_milli, memory_mib = (amount + number * part for amount, part in zip(amounts, more, strict=True))
    return devices, cpu_milli, memory_mib
