"""Sends assignments and cancellations to the nodes whose links this process holds.

Assignments are numbered as they are placed, so new ones are behind the last number read. This process sends what it
places itself at once, and reads what others place from the database. A node with a new link gets all its assignments:
a second copy changes nothing there. Only this process knows for sure which links are here: the database may take one
for lost.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.events.log import RecordedEvent
from tidemill.core.jobs.events import JobEnded, TasksPlaced
from tidemill.core.jobs.plans.work_plan import CallOff
from tidemill.link.held.server import Links
from tidemill.store.jobs import leases
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.query import Connection
from tidemill.wire.messages import FRAME_MAX, Assignment, Cancel, Instruction

AT_ONCE = 5_000
INSTRUCTIONS_MAX = 500
PLACED_KEPT = 100
"""How many batches that were placed here are remembered until their events are heard."""

_INSTRUCTION_BYTES, _REASON_BYTES = 64, 2_000
_KEPT_US = DAY
_FORGET_US = 600 * SECOND


class AssignmentLoop(Loop):
    """Looks every second, and at once when another process has placed tasks or a job is over."""

    name = "assignment"
    wakes_on = frozenset({TasksPlaced, JobEnded})

    def __init__(self, parts: Parts, links: Links) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._links = links
        self._sent_generations: dict[UUID, int] = {}
        self._after = 0
        self._sent_here: set[int] = set()
        self._placed_here_at: deque[Instant] = deque(maxlen=PLACED_KEPT)
        self._forgot_at = Instant(0)

    def heard(self, recorded: Sequence[RecordedEvent]) -> bool:
        """Whether there may be something to send. What was placed here, known by its time, has been sent already."""
        return any(event.kind != TasksPlaced.kind or event.at not in self._placed_here_at for event in recorded)

    def placed(self, assignments: Sequence[AttemptAssignment], now: Instant) -> None:
        """Send what was just placed here, by number. Other processes send to the nodes whose links they hold."""
        self._placed_here_at.append(now)
        self._instruct(assignments, (), now)
        first, last = assignments[0].number, assignments[-1].number
        if first == self._after + 1 and last - first + 1 == len(assignments):
            self._after = last
        else:  # another process may have placed something in between, which the next tick reads
            self._sent_here.update(assignment.number for assignment in assignments)

    async def tick(self, now: Instant) -> Tick:
        await self._forget(now)
        generations = dict(self._links.link_generations())
        newly_linked = [
            node_id for node_id, generation in generations.items() if self._sent_generations.get(node_id) != generation
        ]
        async with self.parts.loop_database.transaction() as transaction:
            fresh = await leases.placed_behind(transaction, self._after, AT_ONCE)
            again = await leases.of_nodes(transaction, newly_linked) if newly_linked else []
            fresh_here = [
                attempt for attempt in fresh if attempt.node_id in generations and attempt.number not in self._sent_here
            ]
            sent = await self._send_assignments(
                transaction, list({attempt.attempt_id: None for attempt in (*again, *fresh_here)}), now
            )
        sent += await self._send_call_offs(now) if generations else 0
        self._sent_generations = generations
        if fresh:
            self._after = max(self._after, fresh[-1].number)
            self._sent_here = {number for number in self._sent_here if number > self._after}
        return Tick(seen=sent, applied=sent, more=len(fresh) == AT_ONCE)

    async def _send_assignments(self, transaction: Connection, attempt_ids: Sequence[UUID], now: Instant) -> int:
        """Send assignments, not too many at a time: each carries its whole task."""
        sent = 0
        for start in range(0, len(attempt_ids), AT_ONCE):
            assignments = await leases.assignments(transaction, attempt_ids[start : start + AT_ONCE])
            self._instruct(assignments, (), now)
            sent += len(assignments)
        return sent

    async def _send_call_offs(self, now: Instant) -> int:
        """Send cancellations. Each is read once, so nothing may come between reading and sending it."""
        async with self.parts.loop_database.connection() as connection:
            called_off = await leases.take_call_offs(connection, self.parts.process_id)
        self._instruct((), called_off, now)
        return len(called_off)

    def _instruct(self, assignments: Iterable[AttemptAssignment], called_off: Iterable[CallOff], now: Instant) -> None:
        instructions: dict[UUID, list[Instruction]] = defaultdict(list)
        for assignment in assignments:
            instructions[assignment.node_id].append(_message(assignment, now))
        for stop in called_off:
            instructions[stop.node_id].append(Cancel(stop.attempt_id.bytes, stop.lease, stop.reason))
        for node_id, pending in instructions.items():
            for frame in _frames(pending):
                self._links.instruct(node_id, frame)

    async def _forget(self, now: Instant) -> None:
        """Forget old cancellations that could not be sent."""
        if now - self._forgot_at >= _FORGET_US:
            self._forgot_at = now
            async with self.parts.loop_database.connection() as connection:
                await leases.forget(connection, Instant(now - _KEPT_US))


def _frames(instructions: Iterable[Instruction]) -> Iterator[list[Instruction]]:
    """Groups of instructions, each of which surely fits a frame."""
    frame: list[Instruction] = []
    size_bytes = 0
    for instruction in instructions:
        instruction_bytes = _INSTRUCTION_BYTES + (
            len(instruction.task) if isinstance(instruction, Assignment) else _REASON_BYTES
        )
        if frame and (
            size_bytes + instruction_bytes > FRAME_MAX - _INSTRUCTION_BYTES or len(frame) == INSTRUCTIONS_MAX
        ):
            yield frame
            frame, size_bytes = [], 0
        frame.append(instruction)
        size_bytes += instruction_bytes
    if frame:
        yield frame


def _message(assignment: AttemptAssignment, now: Instant) -> Assignment:
    left_ms = max(0, assignment.deadline_at - now) // 1_000
    return Assignment(assignment.attempt_id.bytes, assignment.lease, left_ms, assignment.body, assignment.task_id.bytes)
