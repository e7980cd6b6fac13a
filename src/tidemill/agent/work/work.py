"""The work in this agent's hand: it accepts or declines assignments, runs attempts, and hands them over to the pool.

An attempt is on the disk before it is accepted, and stays there until its receipt is kept for the pool. An agent that
was killed goes on with its attempts: it hands a finished one over, lets a waiting one wait again, and runs one that ran
once more, if its time allows; after that it gives the attempt back. To give back is to decline late, which the pool
counts as this node's fault and not as the task's.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from uuid import UUID

import structlog

from tidemill.agent.standing import AgentStanding
from tidemill.agent.work.attempt_directories import AttemptDirectories, AttemptDirectory
from tidemill.agent.work.attempt_in_hand import OCCUPYING, AttemptInHand, AttemptProgress, Stage, StopReason
from tidemill.agent.work.attempt_run import AttemptGivenBack, AttemptRun
from tidemill.agent.work.delivery import Delivery, hand_over, keep_reporting
from tidemill.agent.work.workshop import FeasibleTask, Inputs, Uploads, Workshop
from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.attempt_queue import AttemptStart, objection, overdue, starts
from tidemill.core.nodes.machine.abilities import SANDBOX
from tidemill.core.nodes.machine.hardware import DeviceKind
from tidemill.core.nodes.no_work_reasons import BegunWork
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
    """All attempts in hand. It runs those that it accepts, and reports by itself."""

    def __init__(
        self,
        workshop: Workshop,
        attempts: AttemptDirectories,
        access: tuple[Inputs, Uploads],
        standing: AgentStanding,
        reporting: Reporter,
    ) -> None:
        self._workshop = workshop
        self._directories = attempts
        self._inputs, self._uploads = access
        self._standing = standing
        self._reporting = reporting
        self._delivery = Delivery(reporting, standing.membership.identity, self._receipts_to_come)
        self._in_hand: dict[UUID, AttemptInHand] = {}
        self._wake, self._restored = asyncio.Event(), asyncio.Event()
        self._group: asyncio.TaskGroup | None = None

    @property
    def own_uses_pct(self) -> dict[int, float]:
        """How much of each device, by its index, the attempts may use: all of their own, and of the CPU their cores."""
        machine, occupying = self._standing.machine, self._occupying()
        if machine is None or not occupying:
            return {}
        cores_pct = 100 * sum(start.share.cores for start in occupying) / machine.cores
        device_uses = {index: 100.0 for start in occupying for index in start.devices}
        return device_uses | {device.index: cores_pct for device in machine.devices if device.kind is DeviceKind.CPU}

    def shown(self) -> dict[str, object]:
        """The work in hand as the machine's owner sees it."""
        stages, machine = [attempt.stage for attempt in self._in_hand.values()], self._standing.machine
        return {
            "in_hand": len(stages),
            "running": len(self._occupying()),
            "waiting": stages.count(Stage.WAITING),
            "uploading": stages.count(Stage.UPLOADING),
            "attempts": [attempt.shown() for attempt in list(self._in_hand.values())[:SHOWN_MAX]],
            "sandboxes": [sandbox.description for sandbox in self._workshop.sandboxes],
            "can": None if machine is None else asdict(self._workshop.carries(machine)),
        }

    async def run(self) -> None:
        """Restore the attempts of an earlier run of the agent, then work on those that come."""
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._delivery.run())
            self._group.create_task(self._tell_forever())
            await self._restore()
            self._restored.set()
            while True:
                self._wake.clear()
                self._start_ready()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):  # `wait_for` may miss that it is cancelled
                        await self._wake.wait()

    async def assigned(self, assignment: Assignment) -> AcceptedMessage | DeclinedMessage:
        """Take an attempt, or say why not."""
        await self._restored.wait()
        in_hand = self._in_hand.get(UUID(bytes=assignment.attempt_id))
        if in_hand is not None and in_hand.lease == assignment.lease:
            return AcceptedMessage(assignment.attempt_id, assignment.lease)
        if in_hand is not None and in_hand.lease > assignment.lease:
            return _declined(assignment, _OLD_LEASE)
        accepted = await self._take(assignment)
        if isinstance(accepted, str):
            return _declined(assignment, accepted)
        if in_hand is not None:
            await self._call_off(in_hand)
            await in_hand.over.wait()
        self._add(accepted)
        return AcceptedMessage(assignment.attempt_id, assignment.lease)

    async def cancelled(self, cancel: Cancel) -> None:
        """Stop an attempt, wherever it is. One that is not in hand is over already."""
        await self._restored.wait()
        in_hand = self._in_hand.get(UUID(bytes=cancel.attempt_id))
        if in_hand is not None and in_hand.lease <= cancel.lease:
            await self._call_off(in_hand)

    async def rest(self, begun_work: BegunWork) -> None:
        """The machine may not work now: give waiting attempts back; finish those that run, or stop them as well."""
        reasons = self._standing.reasons(wall())
        sentence = reasons[0].sentence if reasons else "This machine may not work now."
        stages = (Stage.WAITING,) if begun_work is BegunWork.FINISH else (Stage.WAITING, *OCCUPYING)
        for attempt in self._at(stages):
            self._stop(attempt, StopReason.GIVEN_BACK, sentence)

    async def _take(self, assignment: Assignment) -> AttemptInHand | str:
        """Keep an assignment on the disk, or say why it is declined."""
        feasible = self._workshop.feasible_task(assignment.task, assignment.task_id)
        if not isinstance(feasible, FeasibleTask):
            return feasible
        if (machine := self._standing.machine) is None:
            return _NOT_YET
        waiting, remaining_us = len(self._at((Stage.WAITING,))), assignment.deadline_ms * MS
        if refusal := objection(feasible.share, self._workshop.room(machine), waiting=waiting, left_us=remaining_us):
            return refusal.sentence
        try:
            attempt = await asyncio.to_thread(self._directories.take, assignment, Instant(wall() + remaining_us))
        except Fault as fault:
            return str(fault)
        return self._new_in_hand(attempt, feasible, remaining_us)

    def _new_in_hand(self, attempt: AttemptDirectory, feasible: FeasibleTask, remaining_us: int) -> AttemptInHand:
        now = steady()
        progress = AttemptProgress(self._reporting, attempt.assignment)
        return AttemptInHand(attempt, now, Instant(now + remaining_us), feasible, progress)

    async def _restore(self) -> None:
        for attempt in await asyncio.to_thread(self._directories.kept):
            receipt = await asyncio.to_thread(attempt.receipt)
            if receipt is not None:
                in_hand = AttemptInHand(attempt, steady(), steady(), stage=Stage.UPLOADING)
                self._add(in_hand)
                self._start_task(in_hand, receipt)
            else:
                await self._restore_unfinished(attempt)

    async def _restore_unfinished(self, attempt: AttemptDirectory) -> None:
        """Run it once more. A clock that was set back gives it no more time than its assignment did."""
        remaining_us = min(attempt.deadline_at - wall(), attempt.assignment.deadline_ms * MS)
        feasible = self._workshop.feasible_task(attempt.assignment.task, attempt.assignment.task_id)
        if not isinstance(feasible, FeasibleTask):
            await self._give_back(attempt, feasible)
        elif await asyncio.to_thread(attempt.begun) >= BEGUN_MAX:
            await self._give_back(attempt, _ENDED)
        elif remaining_us <= 0:
            await self._give_back(attempt, _LATE)
        else:
            self._add(self._new_in_hand(attempt, feasible, remaining_us))

    def _start_ready(self) -> None:
        """Give overdue attempts back, and start those that fit."""
        for attempt_id in overdue([attempt.waiting for attempt in self._at((Stage.WAITING,))], steady()):
            self._stop(self._in_hand[attempt_id], StopReason.GIVEN_BACK, _LATE)
        machine, waiting = (
            self._standing.machine,
            [attempt for attempt in self._at((Stage.WAITING,)) if not attempt.stop_reason],
        )
        if not waiting or machine is None or self._standing.reasons(wall()):
            return
        room, now = self._workshop.room(machine), steady()
        for start in starts([attempt.waiting for attempt in waiting], self._occupying(), room, now):
            in_hand = self._in_hand[start.attempt_id]
            in_hand.occupy(start)
            self._start_task(in_hand)

    def _start_task(self, in_hand: AttemptInHand, receipt: Receipt | None = None) -> None:
        assert self._group is not None, "work is seen to while `run` runs"
        in_hand.seen_to = self._group.create_task(self._run_to_end(in_hand, receipt))
        self._standing.news.set()

    async def _run_to_end(self, in_hand: AttemptInHand, receipt: Receipt | None) -> None:
        """Run an attempt from its start to its end. Only the end of the agent leaves it unfinished."""
        in_hand.has_begun = True
        try:
            if in_hand.stop_reason is None:
                receipt = receipt or await self._carry_out(in_hand)
            if in_hand.stop_reason is None and receipt is not None:
                await hand_over(in_hand, receipt, self._uploads, self._delivery)
        except asyncio.CancelledError:
            if in_hand.stop_reason is None:
                raise
            asyncio.current_task().uncancel()  # type: ignore[union-attr]  # this runs in a task
        await self._end(in_hand)

    async def _carry_out(self, in_hand: AttemptInHand) -> Receipt | None:
        """The receipt, kept on the disk; None if the attempt is to be given back."""
        node_id = self._standing.membership.node_id
        assert node_id is not None, "offers come to members only"
        machine, start = self._standing.machine, in_hand.start
        assert machine is not None, "what starts has its share of a machine that is known"
        assert start is not None
        devices = [device for device in machine.devices if device.index in start.devices]
        attempt_run = AttemptRun(in_hand, node_id, devices, f"{machine.cpu} {machine.architecture}")
        try:
            receipt = await attempt_run.run(self._inputs)
        except AttemptGivenBack as error:
            in_hand.stop_reason, in_hand.sentence = StopReason.GIVEN_BACK, str(error)
            return None
        await asyncio.to_thread(in_hand.attempt.keep, receipt)
        in_hand.stage = Stage.UPLOADING if receipt.artefact else Stage.REPORTING
        self._changed()
        return receipt

    async def _end(self, in_hand: AttemptInHand) -> None:
        """Remove an attempt that was handed over or called off, or give it back."""
        in_hand.is_ending = True
        try:
            if in_hand.stop_reason is StopReason.GIVEN_BACK:
                await self._give_back(in_hand.attempt, in_hand.sentence)
            else:
                await asyncio.to_thread(in_hand.attempt.remove)
        finally:
            del self._in_hand[in_hand.attempt.id]
            in_hand.over.set()
            self._changed()

    async def _give_back(self, attempt: AttemptDirectory, sentence: str) -> None:
        log.info("attempt given back", attempt=str(attempt.id), cause=sentence)
        self._reporting.answered.note([(attempt.assignment.attempt_id, attempt.assignment.lease)])
        await keep_reporting(self._reporting, _declined(attempt.assignment, sentence))
        await asyncio.to_thread(attempt.remove)

    async def _call_off(self, in_hand: AttemptInHand) -> None:
        """Remove the assignment first: even if the agent is killed now, the attempt does not come back."""
        await asyncio.to_thread(in_hand.attempt.disown)
        self._stop(in_hand, StopReason.CALLED_OFF)

    def _stop(self, in_hand: AttemptInHand, reason: StopReason, sentence: str = "") -> None:
        in_hand.stop(reason, sentence)
        if in_hand.seen_to is None and not in_hand.is_ending:
            self._start_task(in_hand)

    def _add(self, in_hand: AttemptInHand) -> None:
        self._in_hand[in_hand.attempt.id] = in_hand
        self._changed()

    def _changed(self) -> None:
        self._wake.set()
        self._standing.news.set()

    def _at(self, stages: Iterable[Stage]) -> list[AttemptInHand]:
        return [attempt for attempt in self._in_hand.values() if attempt.stage in stages]

    def _occupying(self) -> list[AttemptStart]:
        return [attempt.start for attempt in self._at(OCCUPYING) if attempt.start is not None]

    def _receipts_to_come(self) -> int:
        return len(self._at((Stage.WAITING, *OCCUPYING)))

    async def _tell_forever(self) -> None:
        """Report once a second how far attempts are, what they print, and what this machine can do."""
        while True:
            if (machine := self._standing.machine) is not None:
                await self._reporting.tell(SANDBOX, self._workshop.facts(machine))
            for attempt in self._at(OCCUPYING):
                if attempt.progress is not None and attempt.stage is Stage.RUNNING:
                    await attempt.progress.tell()
            await asyncio.sleep(TICK_S)


def _declined(assignment: Assignment, sentence: str) -> DeclinedMessage:
    return DeclinedMessage(assignment.attempt_id, assignment.lease, sentence[:REASON_MAX])
