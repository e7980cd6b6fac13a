"""Whose result is checked next: customers take turns, so that many large results of one delay no other's.

There are so many places. The next one goes to the customer with the fewest checks at work, and among equals to whoever
had a turn longest ago. One customer has at most all places but one, so that another's result need not wait for a long
check to end.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID


class CheckTurns:
    """The places. Whoever takes one waits for a turn."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._most = max(1, places - 1)
        self._at_work: Counter[UUID] = Counter()
        self._waiting: dict[UUID, deque[asyncio.Future[None]]] = {}
        """By customer. Who was served is put at the end."""

    @asynccontextmanager
    async def turn(self, customer_id: UUID) -> AsyncIterator[None]:
        """A place for one check."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(customer_id, deque()).append(place)
        self._serve()
        try:
            await place
            yield
        finally:
            if place.done() and not place.cancelled():
                self._give_back(customer_id)
            else:
                self._forget(customer_id, place)

    def _serve(self) -> None:
        while self._free and (customer_id := self._next()):
            waiting = self._waiting.pop(customer_id)
            place = waiting.popleft()
            if waiting:
                self._waiting[customer_id] = waiting
            self._free -= 1
            self._at_work[customer_id] += 1
            place.set_result(None)

    def _next(self) -> UUID | None:
        may = (customer_id for customer_id in self._waiting if self._at_work[customer_id] < self._most)
        return min(may, key=self._at_work.__getitem__, default=None)

    def _give_back(self, customer_id: UUID) -> None:
        self._free += 1
        self._at_work[customer_id] -= 1
        if not self._at_work[customer_id]:
            del self._at_work[customer_id]
        self._serve()

    def _forget(self, customer_id: UUID, place: "asyncio.Future[None]") -> None:
        """Who waited has left."""
        waiting = self._waiting[customer_id]
        waiting.remove(place)
        if not waiting:
            del self._waiting[customer_id]
