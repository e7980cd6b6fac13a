"""What challenges found out about nodes, as events. The node's owner may read them."""

from dataclasses import dataclass

from tidemill.core.events.log import Event
from tidemill.core.nodes.challenge.figures import Figures, MachineFigures
from tidemill.core.nodes.events import NodeSubject


@dataclass(frozen=True)
class NodeChallengePassed(NodeSubject, Event, kind="node.challenge_passed"):
    """A node showed what it claims. Speeds include the way there and back, which took about as long as is said. Each
    sentence says of a claim that less of it counts."""

    devices: tuple[Figures, ...]
    round_trip_ms: int | None
    machine: MachineFigures
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeChallengeFailed(NodeSubject, Event, kind="node.challenge_failed"):
    """A node could not show what it claims; each sentence says which figures do not fit."""

    codes: tuple[str, ...]
    sentences: tuple[str, ...]
    devices: tuple[Figures, ...]
    round_trip_ms: int | None
