"""Virtual time: future events in order. Events of one moment happen in the order in which they were noted."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Happens = Callable[[Any], None]


class Agenda:
    """`now` is in microseconds since the beginning of the run."""

    def __init__(self) -> None:
        self.now, self.events = 0, 0
        self._heap: list[tuple[int, int, Happens, Any]] = []
        self._number = 0

    def at(self, at: int, happens: Happens, whom: Any) -> None:
        self._number += 1
        heappush(self._heap, (at, self._number, happens, whom))

    def run(self, until: int) -> None:
        """Run everything up to a moment."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, happens, whom = heappop(heap)
            happens(whom)
            self.events += 1
        self.now = until
