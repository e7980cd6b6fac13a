"""What happens to the health and the reports of nodes, as events. Their owner may read them."""

from dataclasses import dataclass

from tidemill.core.events.log import Event
from tidemill.core.nodes.events import NodeSubject


@dataclass(frozen=True)
class PoolDeaf(Event, kind="pool.deaf"):
    """Of all the nodes that should be heard not one is: the fault is ours, and no silence counts until one is heard."""

    nodes: int
    owners: int


@dataclass(frozen=True)
class PoolHears(Event, kind="pool.hears_again"):
    """A node was heard again after the pool had been deaf."""


@dataclass(frozen=True)
class NodeOffline(NodeSubject, Event, kind="node.offline"):
    """A node was silent for too long while we listened. Whoever gave it work takes it back."""

    heard_at_us: int


@dataclass(frozen=True)
class NodeOnline(NodeSubject, Event, kind="node.online"):
    """A node that was offline is heard again; it has to be challenged before it gets work."""


@dataclass(frozen=True)
class NodeAlertRaised(NodeSubject, Event, kind="node.alert_raised"):
    """Something about a node needs its owner. The device is -1 where it is about the whole node."""

    alert: str
    device: int
    sentence: str


@dataclass(frozen=True)
class NodeAlertCleared(NodeSubject, Event, kind="node.alert_cleared"):
    """What needed the owner of a node is over."""

    alert: str
    device: int


@dataclass(frozen=True)
class NodeHardwareChanged(NodeSubject, Event, kind="node.hardware_changed"):
    """A machine says something else about its hardware than before; the parts that differ, and its devices now."""

    changed: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class NodeFactsRefused(NodeSubject, Event, kind="node.facts_refused"):
    """A node said something about itself that cannot be, so it was not taken: which, and the figures."""

    about: str
    code: str
    sentence: str


@dataclass(frozen=True)
class NodeReportsDropped(NodeSubject, Event, kind="node.reports_dropped"):
    """A node had to drop reports before they arrived: so many because its spool was full, so many damaged."""

    full: int
    damaged: int
