"""Verifying: checks results that could not be judged when they came. Any number of copies may run.

Checks that compute run in a thread, one result at a time. A result that the ledger refuses to pay waits, and is tried
again. A result that is executed again waits for the second execution, and is judged by it.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.terms import work_terms
from tidemill.control.trust.stored_results import StoredResults
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task
from tidemill.core.jobs.plans.happenings import AttemptHappening
from tidemill.core.jobs.private_results import UnsealedResult
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.trust.audits import comparison
from tidemill.core.trust.audits.comparison import READ_MAX_BYTES, DifferenceCause, ExecutionPair, is_same
from tidemill.core.trust.checks import task_checks
from tidemill.core.trust.checks.judgement import (
    NOT_DETERMINISTIC,
    CheckManner,
    ReceiptJudgement,
    ResultFacts,
    SecondExecution,
    UncheckedResult,
    failed,
    faulted,
    judged,
    judged_by_whose,
    manner_of,
    orders_fault,
    passed,
    unsure,
)
from tidemill.core.trust.checks.task_checks import ResultEvidence
from tidemill.core.trust.checks.timing import doubt_about
from tidemill.core.trust.checks.verdict import Ruling
from tidemill.store.settlement.obligations import Unpayable
from tidemill.store.trust import audits, unchecked_results
from tidemill.store.trust.audits import AuditedAttempt, HouseResult

log = structlog.get_logger()

EVERY_S = 1.0
AT_ONCE = 16
LEASE_US = 300 * SECOND
SECRET_BYTES = 32

_GONE = "The result or an input is no longer there, so nothing can be said of it."
_NOT_AS_SIGNED = "The result that was delivered is not the one whose hash the node signed."
_NOT_REPEATED = "No house node could execute it again, so nobody can tell whether it is right."


class VerifyingLoop(Loop):
    """Checks waiting results. `random` makes the secret of each draw, after the receipt is here."""

    name = "verifying"

    def __init__(self, parts: Parts, results: StoredResults, random: Callable[[int], bytes]) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._results = results
        self._random = random
        self._terms = work_terms(parts.settings)
        self._remaining: Sequence[UncheckedResult] = ()
        self._is_unsure = False

    async def tick(self, now: Instant) -> Tick:
        database = self.parts.loop_database
        since = Instant(now - int(self.parts.settings.audit.house_wait_s * SECOND))
        limit = self.parts.settings.loops.batch_max
        given_up = await audits.give_up(database, since, limit, self._terms, self.parts.ids, now)
        results = self._remaining or await self._take(now)
        applied = await self._check_all(results, now)
        return Tick(seen=given_up + len(results), applied=given_up + applied, more=len(results) == AT_ONCE)

    async def _take(self, now: Instant) -> Sequence[UncheckedResult]:
        """Take results to check. If the last answer was lost, take again what we took then without knowing it."""
        may_have_taken, self._is_unsure = self._is_unsure, True
        by = self.parts.process_id
        results = await unchecked_results.take(
            self.parts.loop_database, by, AT_ONCE, lease_us=LEASE_US, now=now, mine=may_have_taken
        )
        self._is_unsure = False
        return results

    async def _check_all(self, results: Sequence[UncheckedResult], now: Instant) -> int:
        """Check one after the other. After a fault the next tick does the rest: our lease keeps others away."""
        applied = 0
        for position, unchecked in enumerate(results):
            self._remaining = results[position + 1 :]
            try:
                applied += await self._check(unchecked, now)
            except DatabaseFault:
                self._remaining = results[position:]
                raise
        return applied

    async def _check(self, unchecked: UncheckedResult, now: Instant) -> int:
        """Check one result, and settle it or have it executed again. Answers whether anything has changed."""
        task = read_task(unchecked.body)
        if isinstance(task, TaskObjection):
            return 0  # a newer version of the pool can read it
        manner = manner_of(ResultFacts(task, is_expected=unchecked.expected is not None, by_house=unchecked.house))
        stored = await self._stored(unchecked, task, manner)
        if stored.is_as_signed and manner is CheckManner.REPEATED and unchecked.second_execution is None:
            return await self._repeat(unchecked, now)
        judgement = (
            await self._judge(unchecked, task, manner, stored) if stored.is_as_signed else failed(_NOT_AS_SIGNED)
        )
        if judgement is None:
            return await self._repeat_again(unchecked, now)
        doubt = "" if unchecked.house else doubt_about(unchecked.receipt, task, unchecked.device, unchecked.times)
        return await self._settle(judged(unchecked, judgement, doubt), now)

    async def _repeat(self, unchecked: UncheckedResult, now: Instant) -> int:
        audited = AuditedAttempt(unchecked.attempt_id, unchecked.lease, unchecked.receipt.result_sha256)
        async with self.parts.loop_database.transaction() as transaction:
            return await audits.begin(transaction, audited, self._terms.patience, self.parts.ids, now)

    async def _repeat_again(self, unchecked: UncheckedResult, now: Instant) -> int:
        """The house's result differs: see whether it comes to the same one again."""
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

    async def _stored(self, unchecked: UncheckedResult, task: Task, manner: CheckManner) -> UnsealedResult:
        """The stored result, with as much of its content as its check needs."""
        if unchecked.second_execution is not None:
            return UnsealedResult(is_as_signed=True)  # this was checked before the second execution
        most_bytes = task_checks.result_max_bytes(task) if manner is CheckManner.PROVED else 0
        return await self._results.find(
            task, unchecked.receipt, is_uploaded=unchecked.is_uploaded, most_bytes=most_bytes
        )

    async def _judge(
        self, unchecked: UncheckedResult, task: Task, manner: CheckManner, stored: UnsealedResult
    ) -> ReceiptJudgement | None:
        """The verdict; None if the house has to execute the task once more."""
        if manner in (CheckManner.EXPECTED, CheckManner.TRUSTED):
            is_second = unchecked.house or unchecked.was_missed
            return judged_by_whose(unchecked.receipt, unchecked.expected, is_second=is_second)
        if manner is CheckManner.PROVED:
            return await self._judge_proof(task, unchecked.receipt, stored.content or b"")
        assert unchecked.second_execution, "only a second execution can be compared"
        return await self._judge_pair(unchecked, task, unchecked.second_execution)

    async def _judge_proof(self, task: Task, receipt: Receipt, result: bytes) -> ReceiptJudgement:
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

    async def _judge_pair(
        self, unchecked: UncheckedResult, task: Task, repeated: SecondExecution
    ) -> ReceiptJudgement | None:
        first, second = unchecked.receipt, repeated.receipt
        if second is None or second.outcome is AttemptOutcome.FAILED:
            return faulted(f"{_NOT_REPEATED} {repeated.reason}".rstrip())
        same = is_same(first, second)
        bodies = () if same else [await self._content(task, receipt) for receipt in (first, second)]
        pair, rules = ExecutionPair(task, first, second, *bodies), self.parts.settings.verification
        verdict = await asyncio.to_thread(comparison.compare, pair, rules)
        sentence = comparison.sentence_of(verdict, same=same)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.REVIEW:
                return unsure(sentence)
            case Ruling.FAIL:
                return _judge_difference(task, second, repeated.first_found, sentence)

    async def _evidence(self, task: Task, result: bytes) -> ResultEvidence | None:
        inputs = {item.name: await self._results.read(item.digest, item.size_bytes) for item in task.inputs}
        there = {name: body for name, body in inputs.items() if body is not None}
        secret = self._random(SECRET_BYTES)
        return ResultEvidence(task, there, result, secret) if len(there) == len(inputs) else None

    async def _content(self, task: Task, receipt: Receipt) -> bytes | None:
        """The content of a result, if it is small enough to be read."""
        stored = await self._results.find(task, receipt, is_uploaded=True, most_bytes=READ_MAX_BYTES)
        return stored.content


def _judge_difference(task: Task, second: Receipt, first_found: bytes | None, sentence: str) -> ReceiptJudgement | None:
    """The house node is right, unless the program gives another result each time; None until that is known."""
    match comparison.cause_of(task, second, first_found):
        case DifferenceCause.UNKNOWN:
            return None
        case DifferenceCause.THE_NODE:
            return failed(sentence)
        case DifferenceCause.THE_PROGRAM:
            return orders_fault(f"{sentence} {NOT_DETERMINISTIC}")
