"""A simulated pool's nodes: what each sells, who owns it, and when its owner lets it work.

A world is a value: it comes from a file, from the live registry, or is made up. A member's index in it is its number
for the entire run, and its draws of chance go with that number, even when others are left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.core.faults import Fault
from tidemill.core.nodes.rules.windows import Window
from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.demand import WHOLE_MILLI
from tidemill.core.placement.supply import Seller


class WorldFault(Fault):
    """A world cannot be made of what was given."""

    code = "unreadable_world"


@dataclass(frozen=True, slots=True)
class Member:
    """One node. `owner` is the name by which its provider can be left out."""

    seller: Seller
    owner: str
    windows: tuple[Window, ...] = ()
    utc_offset_s: int = 0
    left_out: bool = False


@dataclass(frozen=True)
class World:
    members: tuple[Member, ...]

    @property
    def present(self) -> list[Member]:
        return [member for member in self.members if not member.left_out]

    @property
    def owners(self) -> Counter[str]:
        """How many nodes each provider has."""
        return Counter(member.owner for member in self.present)

    def without(self, owner: str) -> "World":
        """The same pool without this provider."""
        if owner not in self.owners:
            largest = ", ".join(name for name, _ in self.owners.most_common(5))
            raise WorldFault(f"No node belongs to {owner}: the largest providers of this world are {largest}.")
        if len(self.owners) == 1:
            raise WorldFault(f"All nodes belong to {owner}: without them there is no pool.")
        return World(tuple(_left_out(member) if member.owner == owner else member for member in self.members))


def capacity_milli(candidate: Candidate) -> int:
    """What of a node can be busy: its devices, or its processor where it has none."""
    return WHOLE_MILLI * len(candidate.devices) or candidate.cpu_milli


def checked_world(members: Sequence[Member]) -> World:
    """A world in which something can happen."""
    if not members:
        raise WorldFault("There is no node in this world: a pool needs at least one.")
    return World(tuple(members))


def _left_out(member: Member) -> Member:
    return Member(member.seller, member.owner, member.windows, member.utc_offset_s, left_out=True)
