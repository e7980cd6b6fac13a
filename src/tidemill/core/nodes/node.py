"""A node as the registry holds it: its owner, its life, and what its machine has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.nodes.life import Condition, NodeLife
from tidemill.core.nodes.rules.rule_book import RuleBook, book_from_json, rules_of
from tidemill.core.nodes.rules.rules import WorkMode
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.references import refused_name
from tidemill.core.refusals import Refusal

NAME_MAX = 100


class NodeRefusal(Refusal):
    UNKNOWN_NODE = "You have no such node: `tidemill nodes list` lists them."
    NODE_NAME_MALFORMED = f"A node's name is 1 to {NAME_MAX} printable characters: choose such a one."
    NODE_SUSPENDED = "The node is suspended already."
    NODE_NOT_SUSPENDED = "The node is not suspended."
    NODES_LEFT = "There are nodes in this account: remove each with `tidemill nodes remove`, then delete it."


@dataclass(frozen=True)
class KnownDevice:
    """What a node claims of one device, and what its last passed challenge measured: None before the first.

    `model` is the catalogue's name, where it knows the device.
    """

    node_id: UUID
    index: int
    kind: str
    name: str
    uuid: str
    model: str | None
    memory_mib: int
    driver: str
    cuda: str | None
    power_limit_w: int | None
    ecc: bool | None
    failing: str | None
    measured_mib: int | None
    measured_ops_per_s: int | None
    nvlink_ppm: int | None
    measured_at: Instant | None


@dataclass(frozen=True)
class Node:
    """A node and when it was heard. `linked_at` is None while no process has its link.

    `machine` is what it claims; of its cores and its memory no more counts than the last passed challenge measured.
    """

    id: UUID
    account_id: UUID
    name: str
    house: bool
    life: NodeLife
    agent: str
    machine: Mapping[str, Any] | None
    measured_cores: int | None
    measured_mib: int | None
    carries: Mapping[str, Any] | None
    rules: Mapping[str, Any]
    utc_offset_s: int
    suspended_reason: str | None
    wishes: int
    joined_at: Instant
    removed_at: Instant | None
    removed_reason: str | None
    linked_at: Instant | None
    heard_at: Instant | None
    offline_since: Instant | None

    @cached_property
    def book(self) -> RuleBook:
        book = book_from_json(self.rules)
        assert isinstance(book, RuleBook), "a book is checked before it is kept"
        return book

    @property
    def cores(self) -> int:
        """The cores that count: those that were claimed and measured."""
        return min(int(self.machine["cores"]), self.measured_cores or 0) if self.machine else 0

    @property
    def memory_mib(self) -> int:
        """The memory that counts: what was claimed and shown."""
        return min(int(self.machine["memory_mib"]), self.measured_mib or 0) if self.machine else 0

    @property
    def conditions(self) -> Collection[Condition]:
        """The conditions that this row shows; its readings may add others."""
        is_online = self.heard_at is not None and self.offline_since is None and self.life is not NodeLife.DEREGISTERED
        conditions = [Condition.ONLINE if is_online else Condition.OFFLINE]
        work = rules_of(self.book).work
        conditions += (
            [Condition.DRAINING] if work is WorkMode.DRAIN else [Condition.PAUSED] if work is WorkMode.PAUSE else []
        )
        return [*conditions, Condition.SUSPENDED] if self.suspended_reason else conditions


def checked_name(name: str) -> str | Refusal:
    """A node's name as it is stored."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        return NodeRefusal.NODE_NAME_MALFORMED
    return refused_name(name) or name


def first_names(token_names: Sequence[str], taken: Collection[str]) -> list[str]:
    """The names of nodes that join, until their owner renames them: their token's, numbered where it is taken."""
    used, names = set(taken), []
    for token_name in map(str.strip, token_names):
        name, number = token_name, 1
        while name in used:
            number += 1
            ending = f"-{number}"
            name = token_name[: NAME_MAX - len(ending)] + ending
        used.add(name)
        names.append(name)
    return names


def removal_reason(reason: str, *, own: bool) -> str | ReasonRefusal:
    """Why a node is removed, as it is stored. Owners need no reason to remove their own."""
    return "" if own and not reason.strip() else checked_reason(reason)
