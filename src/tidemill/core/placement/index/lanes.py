"""Lanes: where nodes wait for requests, by what is free of them, the best in front.

A lane is for nodes with at least so many whole devices, and holds each in the bucket of its rank. Some lanes are
narrow: they are for nodes that also have so much of processor and memory, and are opened when the nodes in front of a
wide lane turned out to have too little of that. Whoever changes enters all its lanes anew; what was entered is stale.
"""

from collections import deque
from collections.abc import Iterator

from tidemill.core.placement.index.node import PoolNode

NARROW_MAX = 8
"""So many narrow lanes there are of one model: every change of a node looks at each of them."""

LaneEntry = tuple[PoolNode, int]
LaneBucket = deque[LaneEntry]
LaneRoom = tuple[int, int]
"""So much of the processor and of memory."""

WIDE: LaneRoom = (0, 0)


class Lane:
    """Nodes with their versions by rank, in the order of their last changes. Bit n of `ranks` is set when the bucket of
    rank n may hold somebody. An entry whose node has changed since is stale."""

    __slots__ = ("buckets", "cpu_milli", "devices", "memory_mib", "ranks")

    def __init__(self, devices: int, room: LaneRoom = WIDE) -> None:
        self.devices, self.ranks = devices, 0
        self.cpu_milli, self.memory_mib = room
        self.buckets: dict[int, LaneBucket] = {}

    def enter(self, entry: LaneEntry, rank: int) -> None:
        bucket = self.buckets.get(rank)
        if bucket:
            bucket.append(entry)
        else:
            self.open(bucket, entry, rank)

    def open(self, bucket: LaneBucket | None, entry: LaneEntry, rank: int) -> None:
        """The first of its rank enters; the bucket is empty, or there was none yet."""
        if bucket is None:
            bucket = self.buckets[rank] = deque()
        bucket.append(entry)
        self.ranks |= 1 << rank

    def is_for(self, node: PoolNode) -> bool:
        return node.whole >= self.devices and node.cpu_milli >= self.cpu_milli and node.memory_mib >= self.memory_mib

    def sweep(self) -> int:
        """Let go of what is stale. Answers how many are left."""
        self.ranks, fresh = 0, 0
        for rank, bucket in list(self.buckets.items()):
            left = deque([entry for entry in bucket if entry[0].version == entry[1]])
            if left:
                self.buckets[rank] = left
                self.ranks |= 1 << rank
                fresh += len(left)
            else:
                del self.buckets[rank]
        return fresh


class LaneMembership:
    """The lanes in which some nodes stand: `wide[n]` are those for a node with n whole devices."""

    __slots__ = ("_lanes", "narrow", "wide")

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        self.wide: list[list[Lane]] = [[]]
        self.narrow: list[Lane] = []

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
        for whole in range(lane.devices, len(self.wide)):
            self.wide[whole].append(lane)


class DeviceModelLanes:
    """The lanes of one model: for everybody, and for requests that are kept for newcomers."""

    __slots__ = ("_known", "everybody", "newcomer")

    def __init__(self) -> None:
        self._known: dict[tuple[int, LaneRoom, bool], Lane] = {}
        self.everybody = LaneMembership()
        """Where all stand who are no newcomers."""
        self.newcomer = LaneMembership()
        """Where newcomers stand: in all there are."""

    def lane(self, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane | None:
        return self._known.get((devices, room, newcomers))

    def wider(self, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane | None:
        """The narrowest of those in which all stand who have so much."""
        cpu_milli, memory_mib = room
        found = [
            lane
            for (_, _, kept), lane in self._known.items()
            if kept == newcomers
            and lane.devices <= devices
            and lane.cpu_milli <= cpu_milli
            and lane.memory_mib <= memory_mib
        ]
        return max(found, key=lambda lane: (lane.devices, lane.cpu_milli, lane.memory_mib), default=None)

    @property
    def has_place(self) -> bool:
        """Whether one more narrow lane may be opened."""
        return len(self.newcomer.narrow) < NARROW_MAX

    def add(self, lane: Lane, *, newcomers: bool) -> None:
        self._known[lane.devices, (lane.cpu_milli, lane.memory_mib), newcomers] = lane
        self.newcomer.add(lane)
        if not newcomers:
            self.everybody.add(lane)
