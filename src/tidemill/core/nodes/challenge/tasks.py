"""The tasks of a challenged device: how much memory to fill, and which products to compute."""

from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import Whole

PAGE_WORDS = 256
PAGE_BYTES = PAGE_WORDS * 8
PARENTS = 8
PAGES_IN_MIB = 2**20 // PAGE_BYTES

DIGESTS_IN_LEAF = 64
"""So few leaves that hashing them is cheap next to the products."""

SIDE_MAX = 8192
"""An opened row of a product of this side fits into one report."""


@dataclass(frozen=True)
class MemoryTask:
    """How to fill memory: so many steps of so many pages. More rounds make each page more expensive to remake."""

    seed: Annotated[int, Whole(0, 2**63 - 1)]
    steps: Annotated[int, Whole(2, 2**32)]
    width: Annotated[int, Whole(1, 2**16)]
    rounds: Annotated[int, Whole(1, 2**20)]

    @property
    def pages(self) -> int:
        return self.steps * self.width

    @property
    def mib(self) -> int:
        return self.pages // PAGES_IN_MIB


@dataclass(frozen=True)
class SpeedTask:
    """So many products of square matrices of this side."""

    seed: Annotated[int, Whole(0, 2**63 - 1)]
    side: Annotated[int, Whole(DIGESTS_IN_LEAF, SIDE_MAX)]
    products: Annotated[int, Whole(1, 1_000_000)]

    @property
    def operations(self) -> int:
        return 2 * self.side**3 * self.products

    @property
    def rows(self) -> int:
        return self.products * self.side

    @property
    def leaves(self) -> int:
        return self.rows // DIGESTS_IN_LEAF
