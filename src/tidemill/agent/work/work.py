"""The work in this agent's hand: offers are taken or declined, attempts wait, run, and are handed over to the pool.

What was accepted is on the disk first, and stays there until the pool can no longer miss it. An agent that was killed
goes on with what it had: a finished attempt is handed over, one that waited waits again, and one that ran is run again,
once, if its time allows; then it is given back. An attempt that is given back is declined after all, which the pool
takes for this node's doing and not for the task's.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from uuid import UUID

import structlog

from tidemill.agent.standing import AgentStanding
from tidemill.agent.work.attempt_directories import AttemptDirectories, AttemptDirectory
from tidemill.agent.work.attempt_in_hand import OCCUPYING, AttemptInHand, Stage, StopReason
from tidemill.agent.work.attempt_progress import AttemptProgress
from tidemill.agent.work.attempt_run import AttemptGivenBack, AttemptRun
from tidemill.agent.work.delivery import Delivery, keep_reporting
from tidemill.agent.work.handover import hand_over
from tidemill.agent.work.workshop import FeasibleTask, Inputs, Uploads, Workshop
from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.attempt_queue import AttemptStart, objection, overdue, starts
from tidemill.core.nodes.machine.abilities import SANDBOX
from tidemill.core.nodes.machine.hardware import DeviceKind
from tidemill.core.nodes.no_work_reasons import BegunWork as Begun
from tidemill.host.clocks import steady, wall
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import AcceptedMessage, Assignment, Cancel, DeclinedMessage

log = structlog.get_logger()

TICK_S = 1.0
BEGUN_MAX = 2
SHOWN_MAX = 20
MS = 1_000
REASON_MAX = 500

_ENDED = "The agent was ended while this ran."
_NOT_YET = "What this machine has is still being looked at: offer it again in a moment."
_LATE = "The deadline passed while it waited on this machine."
_OLD_LEASE = "This attempt is held here under a newer lease."


class WorkInHand:
    """Everything in hand. It is what `tidemill.agent.work.assignment_taker.AssignmentTaker` says."""

    def __init__(
        self,
        workshop: Workshop,
        attempts: AttemptDirectories,
        ways: tuple[Inputs, Uploads],
        standing: AgentStanding,
        reporting: Reporter,
    ) -> None:
        self._workshop = workshop
        self._attempts = attempts
        self._inputs, self._uploads = ways
        self._standing = standing
        self._reporting = reporting
        self._delivery = Delivery(reporting, standing.membership.identity, self._receipts_to_come)
        self._hands: dict[UUID, AttemptInHand] = {}
        self._wake, self._restored = asyncio.Event(), asyncio.Event()
        self._group: asyncio.TaskGroup | None = None

    @property
    def own_uses_pct(self) -> dict[int, float]:
        """A device is used by its attempt alone; of the CPU, attempts use the cores that are their share."""
        machine, occupying = self._standing.machine, self._occupying()
        if machine is None or not occupying:
            return {}
        cores_pct = 100 * sum(start.share.cores for start in occupying) / machine.cores
        given = {index: 100.0 for start in occupying for index in start.devices}
        return given | {one.index: cores_pct for one in machine.devices if one.kind is DeviceKind.CPU}

    def shown(self) -> dict[str, object]:
        """What is in hand, as the machine's owner sees it."""
        stages, machine = [one.stage for one in self._hands.values()], self._standing.machine
        return {
            "in_hand": len(stages),
            "running": len(self._occupying()),
            "waiting": stages.count(Stage.WAITING),
            "uploading": stages.count(Stage.UPLOADING),
            "attempts": [one.shown() for one in list(self._hands.values())[:SHOWN_MAX]],
            "sandboxes": [one.description for one in self._workshop.sandboxes],
            "can": None if machine is None else asdict(self._workshop.carries(machine)),
        }

    async def run(self) -> None:
        """Go on with what an earlier run of the agent left, then with what comes."""
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._delivery.run())
            self._group.create_task(self._telling())
            await self._restore()
            self._restored.set()
            while True:
                self._wake.clear()
                self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):  # `wait_for` may miss that it is cancelled
                        await self._wake.wait()

    async def assigned(self, offer: Assignment) -> AcceptedMessage | DeclinedMessage:
        """Take an attempt, or say why not."""
        await self._restored.wait()
        held = self._hands.get(UUID(bytes=offer.attempt_id))
        if held is not None and held.lease == offer.lease:
            return AcceptedMessage(offer.attempt_id, offer.lease)
        if held is not None and held.lease > offer.lease:
            return _declined(offer, _OLD_LEASE)
        taken = await self._take(offer)
        if isinstance(taken, str):
            return _declined(offer, taken)
        if held is not None:
            await self._call_off(held)
            await held.over.wait()
        self._hold(taken)
        return AcceptedMessage(offer.attempt_id, offer.lease)

    async def cancelled(self, cancel: Cancel) -> None:
        """Stop an attempt, wherever it is. One that is not in hand is over already."""
        await self._restored.wait()
        held = self._hands.get(UUID(bytes=cancel.attempt_id))
        if held is not None and held.lease <= cancel.lease:
            await self._call_off(held)

    async def rest(self, in_hand: Begun) -> None:
        """The machine may not work now. What has not begun is given back; what has is finished, or stopped as well."""
        reasons = self._standing.reasons(wall())
        sentence = reasons[0].sentence if reasons else "This machine may not work now."
        stages = (Stage.WAITING,) if in_hand is Begun.FINISH else (Stage.WAITING, *OCCUPYING)
        for one in self._at(stages):
            self._stop(one, StopReason.GIVEN_BACK, sentence)

    async def _take(self, offer: Assignment) -> AttemptInHand | str:
        """Keep an order on the disk, or say why it cannot be met."""
        doable = self._workshop.feasible_task(offer.task, offer.task_id)
        if not isinstance(doable, FeasibleTask):
            return doable
        if (machine := self._standing.machine) is None:
            return _NOT_YET
        waiting, left_us = len(self._at((Stage.WAITING,))), offer.deadline_ms * MS
        if refusal := objection(doable.share, self._workshop.room(machine), waiting=waiting, left_us=left_us):
            return refusal.sentence
        try:
            attempt = await asyncio.to_thread(self._attempts.take, offer, Instant(wall() + left_us))
        except Fault as fault:
            return str(fault)
        return self._in_hand(attempt, doable, left_us)

    def _in_hand(self, attempt: AttemptDirectory, doable: FeasibleTask, left_us: int) -> AttemptInHand:
        now = steady()
        telling = AttemptProgress(self._reporting, attempt.assignment)
        return AttemptInHand(attempt, now, Instant(now + left_us), doable, telling)

    async def _restore(self) -> None:
        for attempt in await asyncio.to_thread(self._attempts.kept):
            receipt = await asyncio.to_thread(attempt.receipt)
            if receipt is not None:
                held = AttemptInHand(attempt, steady(), steady(), stage=Stage.UPLOADING)
                self._hold(held)
                self._see_to(held, receipt)
            else:
                await self._restore_unfinished(attempt)

    async def _restore_unfinished(self, attempt: AttemptDirectory) -> None:
        """What ran is run once more. A clock that was set back gives nobody more time than the offer did."""
        left_us = min(attempt.deadline_at - wall(), attempt.assignment.deadline_ms * MS)
        doable = self._workshop.feasible_task(attempt.assignment.task, attempt.assignment.task_id)
        if not isinstance(doable, FeasibleTask):
            await self._give_back(attempt, doable)
        elif await asyncio.to_thread(attempt.begun) >= BEGUN_MAX:
            await self._give_back(attempt, _ENDED)
        elif left_us <= 0:
            await self._give_back(attempt, _LATE)
        else:
            self._hold(self._in_hand(attempt, doable, left_us))

    def _look(self) -> None:
        """Start what can start."""
        for attempt_id in overdue([one.waiting for one in self._at((Stage.WAITING,))], steady()):
            self._stop(self._hands[attempt_id], StopReason.GIVEN_BACK, _LATE)
        machine, waiting = self._standing.machine, [one for one in self._at((Stage.WAITING,)) if not one.stop_reason]
        if not waiting or machine is None or self._standing.reasons(wall()):
            return
        room, now = self._workshop.room(machine), steady()
        for start in starts([one.waiting for one in waiting], self._occupying(), room, now):
            held = self._hands[start.attempt_id]
            held.occupy(start)
            self._see_to(held)

    def _see_to(self, held: AttemptInHand, receipt: Receipt | None = None) -> None:
        assert self._group is not None, "work is seen to while `run` runs"
        held.seen_to = self._group.create_task(self._seeing_to(held, receipt))
        self._standing.news.set()

    async def _seeing_to(self, held: AttemptInHand, receipt: Receipt | None) -> None:
        """An attempt from its start to its end. Only the end of the agent leaves it where it is."""
        held.has_begun = True
        try:
            if held.stop_reason is None:
                receipt = receipt or await self._carry_out(held)
            if held.stop_reason is None and receipt is not None:
                await hand_over(held, receipt, self._uploads, self._delivery)
        except asyncio.CancelledError:
            if held.stop_reason is None:
                raise
            asyncio.current_task().uncancel()  # type: ignore[union-attr]  # this runs in a task
        await self._end(held)

    async def _carry_out(self, held: AttemptInHand) -> Receipt | None:
        """The receipt, on the disk; or none, and why."""
        node_id = self._standing.membership.node_id
        assert node_id is not None, "offers come to members only"
        machine, start = self._standing.machine, held.start
        assert machine is not None, "what starts has its share of a machine that is known"
        assert start is not None
        devices = [device for device in machine.devices if device.index in start.devices]
        carrying_out = AttemptRun(held, node_id, devices, f"{machine.cpu} {machine.architecture}")
        try:
            receipt = await carrying_out.run(self._inputs)
        except AttemptGivenBack as given_back:
            held.stop_reason, held.sentence = StopReason.GIVEN_BACK, str(given_back)
            return None
        await asyncio.to_thread(held.attempt.keep, receipt)
        held.stage = Stage.UPLOADING if receipt.artefact else Stage.REPORTING
        self._changed()
        return receipt

    async def _end(self, held: AttemptInHand) -> None:
        """Nothing is left of an attempt that was handed over or called off; one that is given back is declined."""
        held.is_ending = True
        try:
            if held.stop_reason is StopReason.GIVEN_BACK:
                await self._give_back(held.attempt, held.sentence)
            else:
                await asyncio.to_thread(held.attempt.remove)
        finally:
            del self._hands[held.attempt.id]
            held.over.set()
            self._changed()

    async def _give_back(self, attempt: AttemptDirectory, sentence: str) -> None:
        log.info("attempt given back", attempt=str(attempt.id), cause=sentence)
        self._reporting.answered.note([(attempt.assignment.attempt_id, attempt.assignment.lease)])
        await keep_reporting(self._reporting, _declined(attempt.assignment, sentence))
        await asyncio.to_thread(attempt.remove)

    async def _call_off(self, held: AttemptInHand) -> None:
        """The order goes first: whatever is killed now, it does not come back."""
        await asyncio.to_thread(held.attempt.disown)
        self._stop(held, StopReason.CALLED_OFF)

    def _stop(self, held: AttemptInHand, why: StopReason, sentence: str = "") -> None:
        held.stop(why, sentence)
        if held.seen_to is None and not held.is_ending:
            self._see_to(held)

    def _hold(self, held: AttemptInHand) -> None:
        self._hands[held.attempt.id] = held
        self._changed()

    def _changed(self) -> None:
        self._wake.set()
        self._standing.news.set()

    def _at(self, stages: Iterable[Stage]) -> list[AttemptInHand]:
        return [one for one in self._hands.values() if one.stage in stages]

    def _occupying(self) -> list[AttemptStart]:
        return [one.start for one in self._at(OCCUPYING) if one.start is not None]

    def _receipts_to_come(self) -> int:
        return len(self._at((Stage.WAITING, *OCCUPYING)))

    async def _telling(self) -> None:
        """Once a second: how far it is, what was printed, and what this machine can do."""
        while True:
            if (machine := self._standing.machine) is not None:
                await self._reporting.tell(SANDBOX, self._workshop.facts(machine))
            for one in self._at(OCCUPYING):
                if one.progress is not None and one.stage is Stage.RUNNING:
                    await one.progress.tell()
            await asyncio.sleep(TICK_S)


def _declined(offer: Assignment, sentence: str) -> DeclinedMessage:
    return DeclinedMessage(offer.attempt_id, offer.lease, sentence[:REASON_MAX])
