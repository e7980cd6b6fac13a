"""Tells nodes whose links this process holds what they are offered, and what they are to stop.

Offers have numbers in the order of placing, so what is new is behind the last one that was looked at. What this process
places itself it tells at once; what another places is read from the database. A node whose link is new is told all that
it holds: what comes twice changes nothing there. Whose link is here only this process knows for sure: the database may
have taken it for lost meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.events.log import RecordedEvent
from tidemill.core.jobs.task_events import TasksEnded, TasksPlaced
from tidemill.link.held.server import Links
from tidemill.store.jobs import leases
from tidemill.store.jobs.leases import AttemptAssignment, CallOff
from tidemill.store.query import Connection
from tidemill.wire.messages import FRAME_MAX, Assignment, Cancel, Instruction

AT_ONCE = 5_000
ORDERS_MAX = 500
_ORDER_BYTES, _REASON_BYTES = 64, 2_000
_KEPT_US = DAY
_FORGET_US = 600 * SECOND


class AssignmentLoop(Loop):
    """Looks every second, and at once when an event speaks of a job."""

    name = "offering"

    def __init__(self, parts: Parts, links: Links) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._links = links
        self._told: dict[UUID, int] = {}
        self._after = 0
        self._told_here: set[int] = set()
        self._forgot_at = Instant(0)

    def heard(self, batch: Sequence[RecordedEvent], *, placed_here: bool) -> bool:
        """Whether events tell of something that nodes are to be told. What is placed here they hear at once."""
        silent = {TasksEnded.kind, TasksPlaced.kind} if placed_here else {TasksEnded.kind}
        return any(one.subject.startswith("job:") and one.kind not in silent for one in batch)

    def placed(self, offers: Sequence[AttemptAssignment], now: Instant) -> None:
        """What was just placed here, in the order of its numbers. Others tell the nodes whose links they hold."""
        self._order(offers, (), now)
        first, last = offers[0].number, offers[-1].number
        if first == self._after + 1 and last - first + 1 == len(offers):
            self._after = last
        else:  # somebody may have placed something in between, which the next tick reads
            self._told_here.update(one.number for one in offers)

    async def tick(self, now: Instant) -> Tick:
        await self._forget(now)
        held = dict(self._links.link_generations())
        newly_linked = [node_id for node_id, generation in held.items() if self._told.get(node_id) != generation]
        async with self.parts.loop_database.transaction() as transaction:
            fresh = await leases.placed_behind(transaction, self._after, AT_ONCE)
            again = await leases.of_nodes(transaction, newly_linked) if newly_linked else []
            wanted = [one for one in fresh if one.node_id in held and one.number not in self._told_here]
            told = await self._offer(transaction, list({one.attempt_id: None for one in (*again, *wanted)}), now)
        told += await self._call_off(now) if held else 0
        self._told = held
        if fresh:
            self._after = max(self._after, fresh[-1].number)
            self._told_here = {number for number in self._told_here if number > self._after}
        return Tick(seen=told, applied=told, more=len(fresh) == AT_ONCE)

    async def _offer(self, transaction: Connection, attempt_ids: Sequence[UUID], now: Instant) -> int:
        """Tell nodes of attempts, not too many at a time: each comes with all that is to be done."""
        told = 0
        for start in range(0, len(attempt_ids), AT_ONCE):
            offers = await leases.assignments(transaction, attempt_ids[start : start + AT_ONCE])
            self._order(offers, (), now)
            told += len(offers)
        return told

    async def _call_off(self, now: Instant) -> int:
        """Tell nodes what they are to stop. It is told once, so nothing may come between reading and telling it."""
        async with self.parts.loop_database.connection() as connection:
            called_off = await leases.take_call_offs(connection, self.parts.process_id)
        self._order((), called_off, now)
        return len(called_off)

    def _order(self, offers: Iterable[AttemptAssignment], called_off: Iterable[CallOff], now: Instant) -> None:
        orders: dict[UUID, list[Instruction]] = defaultdict(list)
        for one in offers:
            orders[one.node_id].append(_offer(one, now))
        for stop in called_off:
            orders[stop.node_id].append(Cancel(stop.attempt_id.bytes, stop.lease, stop.reason))
        for node_id, wanted in orders.items():
            for frame in _frames(wanted):
                self._links.instruct(node_id, frame)

    async def _forget(self, now: Instant) -> None:
        """Call-offs that nobody could be told."""
        if now - self._forgot_at >= _FORGET_US:
            self._forgot_at = now
            async with self.parts.loop_database.connection() as connection:
                await leases.forget(connection, Instant(now - _KEPT_US))


def _frames(orders: Iterable[Instruction]) -> Iterator[list[Instruction]]:
    """As many orders at once as a frame holds for sure."""
    frame: list[Instruction] = []
    size_bytes = 0
    for order in orders:
        order_bytes = _ORDER_BYTES + (len(order.task) if isinstance(order, Assignment) else _REASON_BYTES)
        if frame and (size_bytes + order_bytes > FRAME_MAX - _ORDER_BYTES or len(frame) == ORDERS_MAX):
            yield frame
            frame, size_bytes = [], 0
        frame.append(order)
        size_bytes += order_bytes
    if frame:
        yield frame


def _offer(one: AttemptAssignment, now: Instant) -> Assignment:
    left_ms = max(0, one.deadline_at - now) // 1_000
    return Assignment(one.attempt_id.bytes, one.lease, left_ms, one.body, one.task_id.bytes)
