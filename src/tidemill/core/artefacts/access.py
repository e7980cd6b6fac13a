"""Who may read and who may delete an artefact: its owner, an operator, and a node while an attempt of its own needs it.

To everybody else the artefact does not exist; nobody learns from a refusal which digests the pool holds.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.artefacts.artefact import Artefact
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import Instant


@dataclass(frozen=True)
class AccountCaller:
    """A person or an API key."""

    account_id: UUID
    is_operator: bool = False


@dataclass(frozen=True)
class NodeCaller:
    """A node. That its owner has an account gives it nothing: only its attempts do."""

    node_id: UUID


@dataclass(frozen=True)
class NodeNeed:
    """An attempt that names the artefact: which node holds its lease, and until when."""

    node_id: UUID
    leased_until: Instant


def refused_reading(
    artefact: Artefact, caller: AccountCaller | NodeCaller, needs: Collection[NodeNeed], now: Instant
) -> ArtefactRefusal | None:
    """Why a caller may not read an artefact; None if it may."""
    if isinstance(caller, AccountCaller):
        return None if _is_theirs(artefact, caller) else ArtefactRefusal.UNKNOWN_ARTEFACT
    return refused_node(caller.node_id, needs, now)


def refused_node(node_id: UUID, needs: Collection[NodeNeed], now: Instant) -> ArtefactRefusal | None:
    """The same for a node that names only a digest; `needs` are the attempts that need it."""
    is_needed = any(need.node_id == node_id and now < need.leased_until for need in needs)
    return None if is_needed else ArtefactRefusal.UNKNOWN_ARTEFACT


def refused_deleting(
    artefact: Artefact, caller: AccountCaller | NodeCaller, unfinished_tasks: int
) -> ArtefactRefusal | None:
    """Why a caller may not delete an artefact; None if it may. Nodes never may."""
    if not isinstance(caller, AccountCaller) or not _is_theirs(artefact, caller):
        return ArtefactRefusal.UNKNOWN_ARTEFACT
    return ArtefactRefusal.ARTEFACT_IN_USE if unfinished_tasks else None


def _is_theirs(artefact: Artefact, caller: AccountCaller) -> bool:
    return caller.is_operator or caller.account_id == artefact.account_id
