"""Judges a delivered result: reads it, has it checked by a process of its own, and says what follows.

Nothing large is in memory here. Results and inputs are copied into unnamed files in the home, and the process that
checks them gets their descriptors.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from tidemill.control.trust.check_processes import CheckFailure, CheckProcesses
from tidemill.control.trust.stored_results import StoredResults
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.trust.audits import comparison
from tidemill.core.trust.audits.comparison import READ_MAX_BYTES, SAME, DifferenceCause, is_same
from tidemill.core.trust.checks import task_checks
from tidemill.core.trust.checks.check_requests import PairRequest, ProofRequest
from tidemill.core.trust.checks.judgement import (
    FAILS_LATER,
    NOT_DETERMINISTIC,
    CheckManner,
    NextStep,
    ReceiptJudgement,
    ResultFacts,
    SecondExecution,
    UncheckedResult,
    decided_by_operator,
    failed,
    faulted,
    judged_by_whose,
    manner_of,
    nobody_looked,
    orders_fault,
    passed,
    unsure,
)
from tidemill.core.trust.checks.verdict import Ruling

SECRET_BYTES = 32

_GONE = "The result or an input is no longer there, so nothing can be said of it."
_NOT_AS_SIGNED = "The result that was delivered is not the one whose hash the node signed."
_NOT_REPEATED = "No house node could execute it again, so nobody can tell whether it is right."


class ResultJudge:
    """`random` makes the secret of each draw, after the receipt is here. `folder` is where files are made."""

    def __init__(
        self, results: StoredResults, checks: CheckProcesses, random: Callable[[int], bytes], folder: Path
    ) -> None:
        self._results = results
        self._checks = checks
        self._random = random
        self._folder = folder

    async def judge(self, unchecked: UncheckedResult, task: Task) -> ReceiptJudgement | NextStep:
        """The verdict, or what it needs first."""
        if unchecked.decision is not None:
            return decided_by_operator(*unchecked.decision)
        if unchecked.is_overdue:
            return nobody_looked()
        manner = manner_of(ResultFacts(task, is_expected=unchecked.expected is not None, by_house=unchecked.house))
        if manner is CheckManner.PROVED:
            return await self._prove(unchecked, task)
        second = unchecked.second_execution
        if second is None and not await self._is_as_signed(unchecked, task):
            return failed(_NOT_AS_SIGNED)  # before a second execution it was
        if manner in (CheckManner.EXPECTED, CheckManner.TRUSTED):
            return judged_by_whose(unchecked.receipt, unchecked.expected, house=unchecked.house)
        return NextStep.REPEAT if second is None else await self._compare(unchecked, task, second)

    async def _is_as_signed(self, unchecked: UncheckedResult, task: Task) -> bool:
        stored = await self._results.find(task, unchecked.receipt, is_uploaded=unchecked.is_uploaded)
        return stored.is_as_signed

    async def _prove(self, unchecked: UncheckedResult, task: Task) -> ReceiptJudgement:
        with ExitStack() as stack:
            files = [stack.enter_context(self._new_file()) for _ in range(1 + len(task.inputs))]
            stored = await self._results.find(
                task,
                unchecked.receipt,
                is_uploaded=unchecked.is_uploaded,
                into=files[0],
                most_bytes=task_checks.result_max_bytes(task),
            )
            if not stored.is_as_signed:
                return failed(_NOT_AS_SIGNED)
            for needed, file in zip(task.inputs, files[1:], strict=True):
                if not await self._results.copy(needed.digest, file, needed.size_bytes):
                    return faulted(_GONE)
            request = ProofRequest(task, unchecked.receipt, self._random(SECRET_BYTES))
            verdict = await self._checks.check(unchecked.customer_id, request, files)
        if isinstance(verdict, CheckFailure):
            return faulted(verdict.value)
        sentence = task_checks.sentence_of(verdict)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.FAIL:
                return failed(sentence)
            case Ruling.REVIEW:
                return faulted(sentence)

    async def _compare(
        self, unchecked: UncheckedResult, task: Task, repeated: SecondExecution
    ) -> ReceiptJudgement | NextStep:
        first, second = unchecked.receipt, repeated.receipt
        if second is None or second.outcome is AttemptOutcome.FAILED:
            return _judge_failure(task, repeated)
        if is_same(first, second):
            return passed(SAME)
        with ExitStack() as stack:
            files = await self._contents(task, (first, second), stack)
            verdict = await self._checks.check(unchecked.customer_id, PairRequest(task, first, second), files)
        if isinstance(verdict, CheckFailure):
            return faulted(verdict.value)
        sentence = comparison.sentence_of(verdict)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.REVIEW:
                return unsure(sentence)
            case Ruling.FAIL:
                return _judge_difference(task, second, repeated.first_found, sentence)

    async def _contents(self, task: Task, receipts: Sequence[Receipt], stack: ExitStack) -> Sequence[BinaryIO]:
        """The contents of results, if all of them are small enough to be read."""
        files = [stack.enter_context(self._new_file()) for _ in receipts]
        for receipt, file in zip(receipts, files, strict=True):
            stored = await self._results.find(task, receipt, is_uploaded=True, into=file, most_bytes=READ_MAX_BYTES)
            if not stored.is_kept:
                return ()
        return files

    def _new_file(self) -> BinaryIO:
        """A file without a name. Nothing is buffered, so that whoever has its descriptor reads all of it."""
        return cast("BinaryIO", TemporaryFile(dir=self._folder, buffering=0))


def _judge_failure(task: Task, repeated: SecondExecution) -> ReceiptJudgement:
    """Nobody can tell whether the result is right; unless the house did execute the customer's own program."""
    if repeated.receipt is None or KINDS[task.kind].ours:
        return faulted(f"{_NOT_REPEATED} {repeated.reason}".rstrip())
    return orders_fault(f"{repeated.reason} {FAILS_LATER}")


def _judge_difference(
    task: Task, second: Receipt, first_found: bytes | None, sentence: str
) -> ReceiptJudgement | NextStep:
    """The house node is right, unless the program gives another result each time."""
    match comparison.cause_of(task, second, first_found):
        case DifferenceCause.UNKNOWN:
            return NextStep.REPEAT_AGAIN
        case DifferenceCause.THE_NODE:
            return failed(sentence)
        case DifferenceCause.THE_PROGRAM:
            return orders_fault(f"{sentence} {NOT_DETERMINISTIC}")
