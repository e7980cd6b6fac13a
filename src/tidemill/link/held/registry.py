"""What a link server asks of whoever knows the nodes: whom to let in, and where to put what they say.

Everything is asked in batches. A link belongs to a generation: what comes from an older one than the registry knows is
answered with `Superseded` and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.wire.messages import Beat, Hello, Order, Reports


@dataclass(frozen=True)
class Held:
    """One link of one node."""

    node_id: UUID
    generation: int


@dataclass(frozen=True)
class Caller:
    """An agent that has shown that it has its key, and where it calls from."""

    hello: Hello
    address: str


@dataclass(frozen=True)
class Admitted:
    """It may come in. `received` is the number of its last report that is safe; `orders` are given at once."""

    held: Held
    received: int
    orders: Sequence[Order] = ()


@dataclass(frozen=True)
class TurnedAway:
    """It may not, and why; and when to try again, if ever."""

    code: str
    sentence: str
    retry_ms: int | None = None


@dataclass(frozen=True)
class HeardBeat:
    held: Held
    beat: Beat
    at: Instant


@dataclass(frozen=True)
class HeardReports:
    held: Held
    reports: Reports


@dataclass(frozen=True)
class Received:
    """Reports up to this number are safe. `orders` are what follows from them."""

    held: Held
    number: int
    orders: Sequence[Order] = ()


@dataclass(frozen=True)
class Superseded:
    """The link is no longer the node's: another one took its place, or the node was removed."""

    held: Held
    code: str
    sentence: str


@dataclass(frozen=True)
class Misreported:
    """The node said what cannot be: its link is closed with this."""

    held: Held
    code: str
    sentence: str


Outcome: TypeAlias = Received | Superseded | Misreported


class Registry(Protocol):
    """Raises a `Fault` when it cannot answer now; the server then tries again, and tells callers to come back."""

    async def admit(self, callers: Sequence[Caller]) -> Sequence[Admitted | TurnedAway]:
        """One answer a caller, in their order."""

    async def heard(self, beats: Sequence[HeardBeat], links: Sequence[Held]) -> Sequence[Superseded]:
        """Keep beats, and note that these links are alive; whoever beat is among them.

        Answers those of them that are no longer the node's.
        """

    async def reported(self, heard: Sequence[HeardReports]) -> Sequence[Outcome]:
        """Keep reports and do what they ask, once each. One answer for each, in their order."""

    async def gone(self, links: Sequence[Held]) -> None:
        """These links are over; their nodes may be silent, or on their way to another process."""

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        """Note that somebody was cut off before they came in, or did what no agent of ours does.

        Whom the registry itself turned away is not told to it again.
        """
