"""Verifying: checks results that could not be judged when they came. Any number of copies may run.

Some results are in hand at once, of one customer at most half of them, and each goes on by itself: a check that takes
long delays neither a tick nor another customer's result. What is decided is settled one result at a time. A result that
the ledger refuses to pay waits, and is tried again. A result that is executed again waits for the second execution, and
is judged by it.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import structlog

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.terms import work_terms
from tidemill.control.trust.result_judge import ResultJudge
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import DatabaseFault, Fault
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.events import ReviewDecided
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import read_task
from tidemill.core.jobs.plans.happenings import AttemptHappening
from tidemill.core.trust.checks.judgement import NextStep, UncheckedResult, judged, look_at_doubt
from tidemill.core.trust.checks.timing import doubt_about
from tidemill.store.settlement.obligations import Unpayable
from tidemill.store.trust import audits, reviews, unchecked_results
from tidemill.store.trust.audits import AuditedAttempt, HouseResult
from tidemill.store.trust.unchecked_results import HandLimits

log = structlog.get_logger()

EVERY_S = 1.0
PATIENCE_S = 0.5
"""How long a tick waits for what is in hand. What takes longer goes on behind it."""

IN_HAND_MAX = 16
OF_ONE_CUSTOMER_MAX = IN_HAND_MAX // 2
LEASE_US = 300 * SECOND


class _InHand(NamedTuple):
    """A result that is being checked."""

    unchecked: UncheckedResult
    checking: "asyncio.Task[int]"


class VerifyingLoop(Loop):
    """Checks waiting results."""

    name = "verifying"
    wakes_on = frozenset({ReviewDecided})

    def __init__(self, parts: Parts, judge: ResultJudge, patience_s: float = PATIENCE_S) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._judge = judge
        self._patience_s = patience_s
        self._terms = work_terms(parts.settings)
        self._lease_us = LEASE_US + int(2 * parts.settings.verification.check_time_s * SECOND)
        self._in_hand: dict[UUID, _InHand] = {}
        self._again: list[UncheckedResult] = []
        """What a fault of the database interrupted. Our lease keeps others away."""

        self._settling = asyncio.Lock()
        """One result is settled at a time: connections are few, and other loops need them."""

        self._is_unsure = False

    async def tick(self, now: Instant) -> Tick:
        database = self.parts.loop_database
        since = Instant(now - int(self.parts.settings.audit.house_wait_s * SECOND))
        limit = self.parts.settings.loops.batch_max
        given_up = await audits.give_up(database, since, limit, self._terms, self.parts.ids, now)
        taken = await self._take(now)
        again, self._again = self._again, []
        for unchecked in (*again, *taken):
            checking = asyncio.create_task(self._check(unchecked))
            self._in_hand[unchecked.attempt_id] = _InHand(unchecked, checking)
        applied = await self._finish()
        return Tick(seen=given_up + len(taken), applied=given_up + applied, more=bool(taken) or bool(self._in_hand))

    async def close(self) -> None:
        """Leave what is in hand to another process."""
        checking = [held.checking for held in self._in_hand.values()]
        for task in checking:
            task.cancel()
        await asyncio.gather(*checking, return_exceptions=True)
        self._in_hand.clear()

    async def _take(self, now: Instant) -> Sequence[UncheckedResult]:
        """Take results to check. If the last answer was lost, take again what we took then without knowing it."""
        unchecked = [*(held.unchecked for held in self._in_hand.values()), *self._again]
        in_hand = {one.attempt_id: one.customer_id for one in unchecked}
        if len(in_hand) >= IN_HAND_MAX:
            return ()
        asked_before = Instant(now - int(self.parts.settings.audit.house_wait_s * SECOND))
        limits = HandLimits(IN_HAND_MAX - len(in_hand), OF_ONE_CUSTOMER_MAX, in_hand, asked_before)
        may_have_taken, self._is_unsure = self._is_unsure, True
        by = self.parts.process_id
        results = await unchecked_results.take(
            self.parts.loop_database, by, limits, lease_us=self._lease_us, now=now, mine=may_have_taken
        )
        self._is_unsure = False
        return results

    async def _finish(self) -> int:
        """Wait a while for what is in hand. Answers how many results have changed; raises a fault of one of them."""
        if not self._in_hand:
            return 0
        done, _ = await asyncio.wait([held.checking for held in self._in_hand.values()], timeout=self._patience_s)
        applied = 0
        fault: Fault | None = None
        for held in [held for held in self._in_hand.values() if held.checking in done]:
            del self._in_hand[held.unchecked.attempt_id]
            try:
                applied += held.checking.result()
            except DatabaseFault as error:
                self._again.append(held.unchecked)
                fault = error
            except Fault as error:
                fault = error
        if fault is not None:
            raise fault
        return applied

    async def _check(self, unchecked: UncheckedResult) -> int:
        """Check one result, and settle it or have it executed again. Answers whether anything has changed."""
        task = read_task(unchecked.body)
        if isinstance(task, TaskObjection):
            return 0  # a newer version of the pool can read it
        judgement = await self._judge.judge(unchecked, task)
        doubt = "" if unchecked.house else doubt_about(unchecked.receipt, task, unchecked.device, unchecked.times)
        async with self._settling:
            now = self.parts.clock.now()
            if isinstance(judgement, NextStep):
                return await self._take_step(judgement, unchecked, doubt, now)
            if doubt and Happening.PASSED in judgement.happenings and (step := look_at_doubt(unchecked)):
                return await self._take_step(step, unchecked, doubt, now)
            return await self._settle(judged(unchecked, judgement, task, doubt), now)

    async def _take_step(self, step: NextStep, unchecked: UncheckedResult, doubt: str, now: Instant) -> int:
        match step:
            case NextStep.REPEAT:
                return await self._repeat(unchecked, now)
            case NextStep.REPEAT_AGAIN:
                return await self._repeat_again(unchecked, now)
            case NextStep.ASK:
                async with self.parts.loop_database.transaction() as transaction:
                    return await reviews.ask(transaction, unchecked, doubt, self.parts.ids, now)

    async def _repeat(self, unchecked: UncheckedResult, now: Instant) -> int:
        audited = AuditedAttempt(unchecked.attempt_id, unchecked.lease, unchecked.receipt.result_sha256)
        async with self.parts.loop_database.transaction() as transaction:
            return await audits.begin(transaction, audited, self._terms.patience, self.parts.ids, now)

    async def _repeat_again(self, unchecked: UncheckedResult, now: Instant) -> int:
        second = unchecked.second_execution
        assert second is not None
        assert second.receipt is not None, "there is a result that differs"
        assert second.attempt_id is not None, "somebody signed it"
        first = HouseResult(second.attempt_id, second.receipt.result_sha256)
        audited = AuditedAttempt(unchecked.attempt_id, unchecked.lease, unchecked.receipt.result_sha256)
        async with self.parts.loop_database.transaction() as transaction:
            return await audits.repeat(transaction, audited, first, self._terms.patience, self.parts.ids, now)

    async def _settle(self, happening: AttemptHappening, now: Instant) -> int:
        """Settle one result alone, so that an unusable hold delays nobody else's money."""
        try:
            plan = await unchecked_results.settle(self.parts.loop_database, happening, self._terms, self.parts.ids, now)
        except Unpayable as fault:
            log.warning("result not settled", attempt_id=str(happening.attempt_id), cause=str(fault))
            return 0
        self.parts.metrics.dispatch.ended(plan.ended_counts)
        return len(plan.states)
