"""Lanes: where nodes wait for demands, by what is free of them, the best in front.

A lane is for nodes with at least so many whole devices, and holds each in the bucket of its rank. Narrow lanes are for
nodes that also have so much processor and memory; one is opened when the nodes in front of a wide lane turn out to have
too little of that (4.5 × without, for tasks that need a processor only, on 20,000 busy nodes). A node that changes
enters all its lanes anew; its earlier entries are stale.
"""

from collections import deque
from collections.abc import Iterator

from tidemill.core.placement.index.node import PoolNode

NARROW_MAX = 8
"""How many narrow lanes a model may have: every change of a node looks at each of them."""

LaneEntry = tuple[PoolNode, int]
LaneBucket = deque[LaneEntry]
LaneRoom = tuple[int, int]
"""An amount of processor and of memory."""

WIDE: LaneRoom = (0, 0)


class Lane:
    """Nodes with their versions by rank. An entry whose node has changed since is stale."""

    __slots__ = ("buckets", "cpu_milli", "devices", "memory_mib", "ranks")

    def __init__(self, devices: int, room: LaneRoom = WIDE) -> None:
        self.devices = devices
        """The least number of whole devices of a node here."""
        self.cpu_milli, self.memory_mib = room
        """The least free processor and memory of a node here."""
        self.buckets: dict[int, LaneBucket] = {}
        """By rank, the nodes in the order of their last changes."""
        self.ranks = 0
        """Bit n is set when the bucket of rank n may hold entries."""

    def enter(self, entry: LaneEntry, rank: int) -> None:
        bucket = self.buckets.get(rank)
        if bucket is None:
            bucket = self.buckets[rank] = deque()
        if not bucket:
            self.ranks |= 1 << rank
        bucket.append(entry)

    def is_for(self, node: PoolNode) -> bool:
        return node.whole >= self.devices and node.cpu_milli >= self.cpu_milli and node.memory_mib >= self.memory_mib

    def sweep(self) -> int:
        """Drop stale entries. Returns how many are left."""
        self.ranks, fresh = 0, 0
        for rank, bucket in list(self.buckets.items()):
            current = deque([entry for entry in bucket if entry[0].version == entry[1]])
            if current:
                self.buckets[rank] = current
                self.ranks |= 1 << rank
                fresh += len(current)
            else:
                del self.buckets[rank]
        return fresh


class LaneMembership:
    """The lanes in which some nodes stand."""

    __slots__ = ("_lanes", "narrow", "wide")

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        """All wide lanes."""
        self.wide: list[list[Lane]] = [[]]
        """`wide[n]` are those for a node with n whole devices (1.17 ×)."""
        self.narrow: list[Lane] = []
        """All narrow lanes, whatever they ask for."""

    def __iter__(self) -> Iterator[Lane]:
        yield from self._lanes
        yield from self.narrow

    def reach(self, devices: int) -> None:
        """There are nodes with so many devices."""
        while len(self.wide) <= devices:
            self.wide.append([lane for lane in self._lanes if lane.devices <= len(self.wide)])

    def add(self, lane: Lane) -> None:
        if lane.cpu_milli or lane.memory_mib:
            self.narrow.append(lane)
            return
        self._lanes.append(lane)
        for count in range(lane.devices, len(self.wide)):
            self.wide[count].append(lane)


class DeviceModelLanes:
    """The lanes of one model: for all nodes, and for demands that are kept for newcomers."""

    __slots__ = ("_known", "everybody", "newcomer")

    def __init__(self) -> None:
        self._known: dict[tuple[int, LaneRoom, bool], Lane] = {}
        """By number of devices, room, and whether it is for newcomers only."""
        self.everybody = LaneMembership()
        """The lanes of nodes that are not newcomers."""
        self.newcomer = LaneMembership()
        """The lanes of newcomers: all of them."""

    def lane(self, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane | None:
        return self._known.get((devices, room, newcomers))

    def wider(self, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane | None:
        """The narrowest lane that holds all nodes with so much."""
        cpu_milli, memory_mib = room
        lanes = [
            lane
            for (_, _, for_newcomers), lane in self._known.items()
            if for_newcomers == newcomers
            and lane.devices <= devices
            and lane.cpu_milli <= cpu_milli
            and lane.memory_mib <= memory_mib
        ]
        return max(lanes, key=lambda lane: (lane.devices, lane.cpu_milli, lane.memory_mib), default=None)

    @property
    def has_place(self) -> bool:
        """Whether one more narrow lane may be opened."""
        return len(self.newcomer.narrow) < NARROW_MAX

    def add(self, lane: Lane, *, newcomers: bool) -> None:
        self._known[lane.devices, (lane.cpu_milli, lane.memory_mib), newcomers] = lane
        self.newcomer.add(lane)
        if not newcomers:
            self.everybody.add(lane)
