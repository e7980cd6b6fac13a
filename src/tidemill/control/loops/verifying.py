"""Verifying: results that could not be judged when they came are checked. Any number of copies may run.

What computes is done in a thread, one result at a time. What the ledger refuses to pay waits, and is tried again.
"""

import asyncio
from collections.abc import Callable

import structlog

from tidemill.artefacts.store import ArtefactStore
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.receiving import work_terms
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.checks.verdict import Ruling
from tidemill.core.clock import SECOND, Instant
from tidemill.core.dispatch.checking import Evidence, checked, is_checkable, result_max_bytes, sentence_of
from tidemill.core.dispatch.judging import DELIVERED, Judged, failed, faulted, judged_at_once, passed
from tidemill.core.faults import Fault
from tidemill.core.kinds.kind import Objection
from tidemill.core.kinds.task import Task, read_task
from tidemill.core.receipts import Receipt
from tidemill.store import verifying
from tidemill.store.settling import Unpayable
from tidemill.store.verifying import Case

log = structlog.get_logger()

EVERY_S = 1.0
AT_ONCE = 16
LEASE_US = 300 * SECOND
SECRET_BYTES = 32

_GONE = "The result or an input is no longer there, so nothing can be said of it."


class VerifyingLoop(Loop):
    """Checks what waits to be checked. `random` makes the secret that draws are made with."""

    name = "verifying"

    def __init__(self, parts: Parts, artefacts: ArtefactStore, random: Callable[[int], bytes]) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._artefacts = artefacts
        self._secret = random(SECRET_BYTES)
        self._terms = work_terms(parts.settings)

    async def tick(self, now: Instant) -> Tick:
        database, ids = self.parts.database, self.parts.ids
        cases = await verifying.take(database, ids.new(now), AT_ONCE, lease_us=LEASE_US, now=now)
        applied = 0
        for case in cases:
            judged = await self._judged(case)
            if judged is not DELIVERED:
                applied += await self._settled(case, judged, now)
        return Tick(seen=len(cases), applied=applied, more=len(cases) == AT_ONCE)

    async def _settled(self, case: Case, judged: Judged, now: Instant) -> int:
        """One by one, so that a hold that cannot be used keeps nobody else's money back."""
        try:
            done = await verifying.settle(self.parts.database, [(case, judged)], self._terms, self.parts.ids, now)
        except Unpayable as fault:
            log.warning("result not settled", attempt_id=str(case.attempt_id), cause=str(fault))
            return 0
        return len(done.attempts)

    async def _judged(self, case: Case) -> Judged:
        at_once = judged_at_once(case.receipt, case.expected, house=case.house)
        task = read_task(case.body)
        if at_once is not DELIVERED or isinstance(task, Objection) or not is_checkable(task):
            return at_once
        evidence = await self._evidence(task, case.receipt)
        if evidence is None:
            return faulted(_GONE)
        verdict = await asyncio.to_thread(checked, case.receipt, evidence)
        sentence = sentence_of(verdict)
        match verdict.ruling:
            case Ruling.PASS:
                return passed(sentence)
            case Ruling.FAIL:
                return failed(sentence)
            case Ruling.REVIEW:
                return faulted(sentence)

    async def _evidence(self, task: Task, receipt: Receipt) -> Evidence | None:
        result = receipt.inline
        if receipt.artefact is not None:
            result = await self._read(receipt.artefact, result_max_bytes(task)) or b""
        inputs = {one.name: await self._read(one.digest, one.size_bytes) for one in task.inputs}
        there = {name: body for name, body in inputs.items() if body is not None}
        return Evidence(task, there, result, self._secret) if len(there) == len(inputs) else None

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
