"""What happens to nodes and join tokens, as events. Their owner may read what concerns them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tidemill.core.accounts.events import AccountSubject
from tidemill.core.events.log import Event


@dataclass(frozen=True)
class NodeSubject:
    """What events about one node share: whose it is, and which."""

    account_id: UUID
    node_id: UUID

    @property
    def subject(self) -> str:
        return f"node:{self.node_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class JoinTokenMade(AccountSubject, Event, kind="join_token.made", audited=True):
    """Somebody made a token with which so many machines can join."""

    token_id: UUID
    name: str
    house: bool
    uses_max: int
    expires_at_us: int
    by: str


@dataclass(frozen=True)
class JoinTokenRevoked(AccountSubject, Event, kind="join_token.revoked", audited=True):
    """A join token lets nobody in any more."""

    token_id: UUID
    name: str
    by: str


@dataclass(frozen=True)
class NodeJoined(NodeSubject, Event, kind="node.joined", audited=True):
    """A machine joined the pool with a token."""

    name: str
    house: bool
    token_id: UUID
    agent: str
    address: str


@dataclass(frozen=True)
class NodeRemoved(NodeSubject, Event, kind="node.removed", audited=True):
    """A node was removed: its identity is worth nothing any more."""

    name: str
    reason: str
    by: str


@dataclass(frozen=True)
class NodeSuspended(NodeSubject, Event, kind="node.suspended", audited=True):
    """An operator suspended a node, or let it work again."""

    suspended: bool
    reason: str
    by: str


@dataclass(frozen=True)
class NodeRenamed(NodeSubject, Event, kind="node.renamed"):
    """A node has another name."""

    name: str
    by: str


@dataclass(frozen=True)
class NodeRulesChanged(NodeSubject, Event, kind="node.rules_changed"):
    """Rules of a node were changed, on the node itself or in the pool. A rule that was taken away is null."""

    rules: Mapping[str, Any]
    place: str
    by: str


@dataclass(frozen=True)
class NodeCloned(NodeSubject, Event, kind="node.cloned", audited=True):
    """A second machine showed the identity of a node that is here, and was turned away. Told now and then."""

    address: str


@dataclass(frozen=True)
class NodeVersionRefused(NodeSubject, Event, kind="node.version_refused"):
    """A node runs an agent that is too old to get work. Told once for each version."""

    agent: str
    oldest: str


@dataclass(frozen=True)
class LinkRefused(Event, kind="link.refused", audited=True):
    """Somebody called as an agent and was turned away, or did what no agent does; so many times lately."""

    code: str
    address: str
    node_id: UUID | None
    times: int

    @property
    def subject(self) -> str:
        return f"node:{self.node_id}" if self.node_id else "pool"
