"""Verifying: results that could not be judged when they came are checked. Any number of copies may run.

What computes is done in a thread, one result at a time. What the ledger refuses to pay waits, and is tried again. What
is executed again waits for that, and is judged by what came of it.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from tidemill.control.jobs.attempt_reports import work_terms
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.trust.stored_results import StoredResults
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task
from tidemill.core.jobs.private_results import UnsealedResult
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.trust.audits import comparison
from tidemill.core.trust.audits.comparison import READ_MAX_BYTES, ExecutionPair, is_same
from tidemill.core.trust.checks import task_checks
from tidemill.core.trust.checks.choice import CheckManner, ResultFacts, manner_of
from tidemill.core.trust.checks.plausibility import doubt_about
from tidemill.core.trust.checks.receipt_checks import (
    NOT_DETERMINISTIC,
    ReceiptJudgement,
    failed,
    faulted,
    judged_by_whose,
    passed,
    unsure,
)
from tidemill.core.trust.checks.task_checks import ResultEvidence
from tidemill.core.trust.checks.verdict import Ruling
from tidemill.store.settlement.rewards import Unpayable
from tidemill.store.trust import audits, unchecked_results
from tidemill.store.trust.audits import AuditedAttempt
from tidemill.store.trust.unchecked_results import CheckedResult, SecondExecution, UncheckedResult

log = structlog.get_logger()

EVERY_S = 1.0
AT_ONCE = 16
LEASE_US = 300 * SECOND
SECRET_BYTES = 32

_GONE = "The result or an input is no longer there, so nothing can be said of it."
_NOT_AS_SIGNED = "The result that was delivered is not the one whose hash the node signed."
_NOT_REPEATED = "No house node could execute it again, so nobody can tell whether it is right."


class VerifyingLoop(Loop):
    """Checks what waits to be checked. `random` makes the secret of each draw, after the receipt is here."""

    name = "verifying"

    def __init__(self, parts: Parts, results: StoredResults, random: Callable[[int], bytes]) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._results = results
        self._random = random
        self._terms = work_terms(parts.settings)
        self._left: Sequence[UncheckedResult] = ()
        self._is_unsure = False

    async def tick(self, now: Instant) -> Tick:
        database = self.parts.loop_database
        since = Instant(now - int(self.parts.settings.audit.house_wait_s * SECOND))
        given_up = await audits.give_up(database, since, self.parts.settings.loops.batch_max, now)
        cases = self._left or await self._taken(now)
        applied = await self._all_checked(cases, now)
        return Tick(seen=given_up + len(cases), applied=given_up + applied, more=len(cases) == AT_ONCE)

    async def _taken(self, now: Instant) -> Sequence[UncheckedResult]:
        """What is to be checked now. If the last answer was lost, what we took then is ours, and we do not know it."""
        mine, self._is_unsure = self._is_unsure, True
        by = self.parts.process_id
        cases = await unchecked_results.take(
            self.parts.loop_database, by, AT_ONCE, lease_us=LEASE_US, now=now, mine=mine
        )
        self._is_unsure = False
        return cases

    async def _all_checked(self, cases: Sequence[UncheckedResult], now: Instant) -> int:
        """Each in its turn. What a fault keeps us from is done in the next tick: nobody else does it before long."""
        applied = 0
        for place, case in enumerate(cases):
            self._left = cases[place + 1 :]
            try:
                applied += await self._checked(case, now)
            except DatabaseFault:
                self._left = cases[place:]
                raise
        return applied

    async def _checked(self, case: UncheckedResult, now: Instant) -> int:
        """Check one result, and settle it or have it executed again. Answers whether anything has changed."""
        task = read_task(case.body)
        if isinstance(task, TaskObjection):
            return 0  # a newer version of the pool can read it
        manner = manner_of(ResultFacts(task, is_expected=case.expected is not None, by_house=case.house))
        held = await self._held(case, task, manner)
        if held.is_as_signed and manner is CheckManner.REPEATED and case.second_execution is None:
            return await self._repeat(case, now)
        judged = await self._judged(case, task, manner, held) if held.is_as_signed else failed(_NOT_AS_SIGNED)
        doubt = "" if case.house else doubt_about(case.receipt, task, case.device, case.times)
        return await self._settled(CheckedResult(case, judged, doubt), now)

    async def _repeat(self, case: UncheckedResult, now: Instant) -> int:
        audited = AuditedAttempt(case.attempt_id, case.lease, case.receipt.result_sha256)
        async with self.parts.loop_database.transaction() as transaction:
            return await audits.begin(transaction, audited, self._terms.patience, self.parts.ids, now)

    async def _settled(self, checked: CheckedResult, now: Instant) -> int:
        """One by one, so that a hold that cannot be used keeps nobody else's money back."""
        try:
            done = await unchecked_results.settle(self.parts.loop_database, checked, self._terms, self.parts.ids, now)
        except Unpayable as fault:
            log.warning("result not settled", attempt_id=str(checked.result.attempt_id), cause=str(fault))
            return 0
        self.parts.metrics.dispatch.ended(done.ended)
        return len(done.attempts)

    async def _held(self, case: UncheckedResult, task: Task, manner: CheckManner) -> UnsealedResult:
        """What the pool has of a result, with as much of its content as its check needs."""
        if case.second_execution is not None:
            return UnsealedResult(is_as_signed=True)  # it was before it was executed again
        most_bytes = task_checks.result_max_bytes(task) if manner is CheckManner.PROVED else 0
        return await self._results.find(task, case.receipt, is_uploaded=case.is_uploaded, most_bytes=most_bytes)

    async def _judged(
        self, case: UncheckedResult, task: Task, manner: CheckManner, held: UnsealedResult
    ) -> ReceiptJudgement:
        if manner in (CheckManner.EXPECTED, CheckManner.TRUSTED):
            return judged_by_whose(case.receipt, case.expected)
        if manner is CheckManner.PROVED:
            return await self._proved(task, case.receipt, held.content or b"")
        assert case.second_execution, "what was not executed again is not judged by it"
        return await self._compared(case, task, case.second_execution)

    async def _proved(self, task: Task, receipt: Receipt, result: bytes) -> ReceiptJudgement:
        evidence = await self._evidence(task, result)
        if evidence is None:
            return faulted(_GONE)
        verdict = await asyncio.to_thread(task_checks.check_result, receipt, evidence)
        sentence = task_checks.sentence_of(verdict)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.FAIL:
                return failed(sentence)
            case Ruling.REVIEW:
                return faulted(sentence)

    async def _compared(self, case: UncheckedResult, task: Task, repeated: SecondExecution) -> ReceiptJudgement:
        claim, found = case.receipt, repeated.receipt
        if found is None or found.outcome is AttemptOutcome.FAILED:
            return faulted(f"{_NOT_REPEATED} {repeated.reason}".rstrip())
        same = is_same(claim, found)
        bodies = () if same else [await self._content(task, one) for one in (claim, found)]
        pair, rules = ExecutionPair(task, claim, found, *bodies), self.parts.settings.verification
        verdict = await asyncio.to_thread(comparison.compare, pair, rules)
        sentence = comparison.sentence_of(verdict, same=same)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.REVIEW:
                return unsure(sentence)
            case Ruling.FAIL:
                return await self._different(case, task, found, sentence)

    async def _different(self, case: UncheckedResult, task: Task, found: Receipt, sentence: str) -> ReceiptJudgement:
        """The house is right, unless the task itself has no single result."""
        async with self.parts.loop_database.connection() as connection:
            earlier = await audits.earlier(connection, case.task_id, case.attempt_id)
        if comparison.is_undetermined(task, case.receipt, found, case.owner_id, earlier):
            return faulted(f"{sentence} {NOT_DETERMINISTIC}")
        return failed(sentence)

    async def _evidence(self, task: Task, result: bytes) -> ResultEvidence | None:
        inputs = {one.name: await self._results.read(one.digest, one.size_bytes) for one in task.inputs}
        there = {name: body for name, body in inputs.items() if body is not None}
        secret = self._random(SECRET_BYTES)
        return ResultEvidence(task, there, result, secret) if len(there) == len(inputs) else None

    async def _content(self, task: Task, receipt: Receipt) -> bytes | None:
        """What was left, where it is small enough to be read."""
        held = await self._results.find(task, receipt, is_uploaded=True, most_bytes=READ_MAX_BYTES)
        return held.content
