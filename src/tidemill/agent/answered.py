"""Offers that were answered: accepted, declined or delivered. One that is made again changes nothing.

A pool offers again on a new link whatever it has heard nothing of, also what is just on its way to it. So an offer
counts as answered from the moment in which its answer is handed over, and not when the pool has it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeAlias

KEPT_MAX = 1_000

OfferKey: TypeAlias = tuple[bytes, int]
"""An attempt and its lease."""


class Answered:
    """The last ones, by attempt and lease."""

    def __init__(self) -> None:
        self._keys: OrderedDict[OfferKey, None] = OrderedDict()

    def __contains__(self, key: OfferKey) -> bool:
        return key in self._keys

    def note(self, keys: Iterable[OfferKey]) -> None:
        self._keys.update(dict.fromkeys(keys))
        while len(self._keys) > KEPT_MAX:
            self._keys.popitem(last=False)
