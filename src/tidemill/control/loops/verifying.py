"""Verifying: results that could not be judged when they came are checked. Any number of copies may run.

What computes is done in a thread, one result at a time. What the ledger refuses to pay waits, and is tried again. What
is executed again waits for that, and is judged by what came of it.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from tidemill.artefacts.store import ArtefactStore
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.receiving import work_terms
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.checks.verdict import Ruling
from tidemill.core.clock import SECOND, Instant
from tidemill.core.dispatch import checking, comparing
from tidemill.core.dispatch.auditing import Delivered, Manner, manner_of
from tidemill.core.dispatch.checking import Evidence
from tidemill.core.dispatch.comparing import READ_MAX_BYTES, Pair, is_as_signed, is_same
from tidemill.core.dispatch.judging import DELIVERED, Judged, failed, faulted, judged_at_once, passed, unsure
from tidemill.core.dispatch.plausibility import doubt_about
from tidemill.core.faults import DatabaseFault, Fault
from tidemill.core.kinds.kind import Objection
from tidemill.core.kinds.task import Task, read_task
from tidemill.core.receipts import Outcome, Receipt
from tidemill.core.verification.answers import Judgement
from tidemill.store import audits, verifying
from tidemill.store.audits import Audited
from tidemill.store.settling import Unpayable
from tidemill.store.verifying import Case, Checked, Repeated

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

    def __init__(self, parts: Parts, artefacts: ArtefactStore, random: Callable[[int], bytes]) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._artefacts = artefacts
        self._random = random
        self._terms = work_terms(parts.settings)
        self._left: Sequence[Case] = ()

    async def tick(self, now: Instant) -> Tick:
        database = self.parts.database
        since = Instant(now - int(self.parts.settings.audit.house_wait_s * SECOND))
        given_up = await audits.give_up(database, since, self.parts.settings.loops.batch_max, now)
        cases = self._left or await verifying.take(database, self.parts.process_id, AT_ONCE, lease_us=LEASE_US, now=now)
        applied = await self._all_checked(cases, now)
        return Tick(seen=given_up + len(cases), applied=given_up + applied, more=len(cases) == AT_ONCE)

    async def _all_checked(self, cases: Sequence[Case], now: Instant) -> int:
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

    async def _checked(self, case: Case, now: Instant) -> int:
        """Check one result, and settle it or have it executed again. Answers whether anything has changed."""
        task = read_task(case.body)
        if isinstance(task, Objection):
            return 0  # a newer version of the pool can read it
        manner = manner_of(Delivered(task, is_expected=case.expected is not None, by_house=case.house))
        if manner is Manner.REPEATED and case.repeated is None and self._is_as_signed(case):
            return await self._repeat(case, now)
        judged = await self._judged(case, task, manner)
        doubt = "" if case.house else doubt_about(case.receipt, task, case.device, case.times)
        return await self._settled(Checked(case, judged, doubt), now)

    async def _repeat(self, case: Case, now: Instant) -> int:
        audited = Audited(case.attempt_id, case.lease, case.receipt.result_sha256)
        async with self.parts.database.transaction() as transaction:
            return await audits.begin(transaction, audited, self._terms.patience, self.parts.ids, now)

    async def _settled(self, checked: Checked, now: Instant) -> int:
        """One by one, so that a hold that cannot be used keeps nobody else's money back."""
        try:
            done = await verifying.settle(self.parts.database, checked, self._terms, self.parts.ids, now)
        except Unpayable as fault:
            log.warning("result not settled", attempt_id=str(checked.case.attempt_id), cause=str(fault))
            return 0
        self.parts.metrics.dispatch.ended(done.ended)
        return len(done.attempts)

    async def _judged(self, case: Case, task: Task, manner: Manner) -> Judged:
        if manner in (Manner.EXPECTED, Manner.TRUSTED):
            judged = judged_at_once(case.receipt, case.expected, house=case.house)
            assert judged is not DELIVERED, "what is known can be judged"
            return judged
        if not self._is_as_signed(case):
            return failed(_NOT_AS_SIGNED)
        if manner is Manner.PROVED:
            return await self._proved(task, case.receipt)
        assert case.repeated, "what was not executed again is not judged by it"
        return await self._compared(case, task, case.repeated)

    def _is_as_signed(self, case: Case) -> bool:
        return is_as_signed(case.receipt, is_uploaded=case.is_uploaded)

    async def _proved(self, task: Task, receipt: Receipt) -> Judged:
        evidence = await self._evidence(task, receipt)
        if evidence is None:
            return faulted(_GONE)
        verdict = await asyncio.to_thread(checking.checked, receipt, evidence)
        sentence = checking.sentence_of(verdict)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.FAIL:
                return failed(sentence)
            case Ruling.REVIEW:
                return faulted(sentence)

    async def _compared(self, case: Case, task: Task, repeated: Repeated) -> Judged:
        claim, found = case.receipt, repeated.receipt
        if found is None or found.outcome is Outcome.FAILED:
            return faulted(f"{_NOT_REPEATED} {repeated.reason}".rstrip())
        same = is_same(claim, found)
        bodies = () if same else (await self._body(claim), await self._body(found))
        verdict = await asyncio.to_thread(comparing.compared, Pair(task, claim, found, *bodies))
        sentence = comparing.sentence_of(verdict, same=same)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.REVIEW:
                return unsure(sentence)
            case Ruling.FAIL:
                return await self._different(case, task, found, sentence)

    async def _different(self, case: Case, task: Task, found: Receipt, sentence: str) -> Judged:
        """The house is right, unless the task itself has no single result."""
        async with self.parts.database.connection() as connection:
            earlier = await audits.earlier(connection, case.task_id, case.attempt_id)
        if comparing.is_undetermined(task, case.receipt, found, case.owner_id, earlier):
            return faulted(f"{sentence} {Judgement.NOT_DETERMINISTIC.value}")
        return failed(sentence)

    async def _evidence(self, task: Task, receipt: Receipt) -> Evidence | None:
        result = receipt.inline
        if receipt.artefact is not None:
            result = await self._read(receipt.artefact, checking.result_max_bytes(task)) or b""
        inputs = {one.name: await self._read(one.digest, one.size_bytes) for one in task.inputs}
        there = {name: body for name, body in inputs.items() if body is not None}
        secret = self._random(SECRET_BYTES)
        return Evidence(task, there, result, secret) if len(there) == len(inputs) else None

    async def _body(self, receipt: Receipt) -> bytes | None:
        """What was left, where it is small enough to be read."""
        return receipt.inline if receipt.artefact is None else await self._read(receipt.artefact, READ_MAX_BYTES)

    async def _read(self, digest: Digest, most_bytes: int) -> bytes | None:
        """The bytes of an artefact; none where there are none, or more than there may be."""
        reading = await self._artefacts.open(digest)
        if isinstance(reading, ArtefactRefusal):
            return None
        try:
            if reading.size_bytes > most_bytes:
                return None
            return b"".join([chunk async for chunk in reading])
        except OSError as error:
            raise Fault(f"An artefact cannot be read: {error.strerror}.") from None
        finally:
            await reading.close()
