"""What a link server asks of the part that knows the nodes: whom to let in, and where to put their reports.

Everything is asked in batches. A link has a generation: what comes from an older one than the registry knows is
answered with `Supersession` and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.wire.messages import BeatMessage, Hello, Instruction, Reports


@dataclass(frozen=True)
class LinkGeneration:
    """One link of one node."""

    node_id: UUID
    generation: int


@dataclass(frozen=True)
class AgentCall:
    """An agent that has shown that it has its key, and where it calls from."""

    hello: Hello
    address: str


@dataclass(frozen=True)
class AdmissionGrant:
    """It may come in. `received` is the number of its last report that is safe; `instructions` are given at once."""

    link: LinkGeneration
    received: int
    instructions: Sequence[Instruction] = ()


@dataclass(frozen=True)
class AdmissionDenial:
    """It may not, and why; and when to try again, if ever."""

    code: str
    sentence: str
    retry_ms: int | None = None


@dataclass(frozen=True)
class BeatArrival:
    link: LinkGeneration
    beat: BeatMessage
    at: Instant


@dataclass(frozen=True)
class ReportsArrival:
    link: LinkGeneration
    reports: Reports


@dataclass(frozen=True)
class Acknowledgement:
    """Reports up to this number are safe. `instructions` are what follows from them."""

    link: LinkGeneration
    number: int
    instructions: Sequence[Instruction] = ()


@dataclass(frozen=True)
class Supersession:
    """The link is no longer the node's: another one took its place, or the node was removed."""

    link: LinkGeneration
    code: str
    sentence: str


@dataclass(frozen=True)
class Misreport:
    """The node reported something impossible: its link is closed with this."""

    link: LinkGeneration
    code: str
    sentence: str


ReportsAnswer: TypeAlias = Acknowledgement | Supersession | Misreport


class Registry(Protocol):
    """Raises a `Fault` when it cannot answer now; the server then tries again, and tells callers to come back."""

    async def admit(self, callers: Sequence[AgentCall]) -> Sequence[AdmissionGrant | AdmissionDenial]:
        """One answer a caller, in their order."""

    async def heard(self, beats: Sequence[BeatArrival], links: Sequence[LinkGeneration]) -> Sequence[Supersession]:
        """Keep beats, and note that these links are alive; the links of the beats are among them.

        Answers those of them that are no longer the node's.
        """

    async def reported(self, arrivals: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        """Keep reports and do what they ask, once each. One answer for each, in their order."""

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        """These links are over; their nodes may be silent, or on their way to another process."""

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        """Note that a caller was cut off before it came in, or did something that no agent of ours does.

        Callers that the registry itself turned away are not reported to it again.
        """
