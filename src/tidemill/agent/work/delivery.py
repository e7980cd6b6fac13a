"""Hands finished attempts over: uploads each result, for hours if need be, and then delivers the receipt to the pool.

The receipt goes last, so that whoever has it can get the result, too. A pool that cannot be reached is tried again. If
the pool refuses the result, the attempt is given back.

Receipts that come at about the same time share a signature and a write to the spool. When no other attempt is in hand,
a receipt does not wait for others. If the disk is full, it is tried again: until then the receipt stays with its
attempt.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from tidemill.agent.work.attempt_in_hand import AttemptInHand, Stage, StopReason
from tidemill.agent.work.workshop import Uploads
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.clock import HOUR, SECOND
from tidemill.core.faults import Fault
from tidemill.core.jobs.receipts import BATCH_MAX_BYTES, Receipt, batch_bytes, receipt_bytes, sign_batch
from tidemill.core.refusals import Refusal
from tidemill.core.signatures import Identity
from tidemill.host.clocks import steady
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import ReceiptsMessage, Report

log = structlog.get_logger()

UPLOAD_US = 24 * HOUR
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
GATHER_S = 0.05
BATCH_MAX = 64
AGAIN_S = 5.0

_HEAD_BYTES, _EACH_BYTES = 16, 4


async def hand_over(in_hand: AttemptInHand, receipt: Receipt, uploads: Uploads, delivery: "Delivery") -> None:
    """Returns when the receipt is kept for the pool, or the attempt is to be given back."""
    if receipt.artefact is not None and (sentence := await _uploaded(in_hand, receipt.artefact, uploads)):
        in_hand.stop_reason, in_hand.sentence = StopReason.GIVEN_BACK, sentence
        return
    in_hand.stage = Stage.REPORTING
    await delivery.deliver(receipt)


async def _uploaded(in_hand: AttemptInHand, digest: Digest, uploads: Uploads) -> str | None:
    """Why the result is not with the pool; None if it is."""
    in_hand.stage = Stage.UPLOADING
    pause_s, until = FIRST_PAUSE_S, steady() + UPLOAD_US
    while True:
        try:
            answer = await uploads.upload(in_hand.attempt.result, Purpose.RESULT, in_hand.attempt.id, digest)
        except Fault as fault:
            log.info("result not uploaded yet", attempt=str(in_hand.attempt.id), cause=str(fault), again_s=pause_s)
            if steady() + pause_s * SECOND > until:
                return f"The result could not be uploaded. {fault}"
        else:
            return f"The pool did not take the result. {answer.sentence}" if isinstance(answer, Refusal) else None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@dataclass(frozen=True)
class _Waiting:
    receipt: Receipt
    size_bytes: int
    is_kept: asyncio.Future[None]


class Delivery:
    """Takes receipts from any number of attempts at once."""

    def __init__(self, reporting: Reporter, identity: Identity, to_come: Callable[[], int]) -> None:
        """`to_come` returns how many more attempts will bring a receipt."""
        self._reporting = reporting
        self._identity = identity
        self._to_come = to_come
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()

    async def deliver(self, receipt: Receipt) -> None:
        """Returns when the receipt is in the spool, which holds it until the pool has it."""
        is_kept = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(receipt, len(receipt_bytes(receipt)), is_kept))
        self._arrived.set()
        await is_kept

    async def run(self) -> None:
        while True:
            await self._gather()
            if group := self._next_group():
                await self._keep(group)

    async def _gather(self) -> None:
        """Wait for a first receipt, then a moment for more."""
        until = None
        while not self._is_due():
            self._arrived.clear()
            if self._waiting and until is None:
                until = asyncio.get_running_loop().time() + GATHER_S
            try:
                async with asyncio.timeout_at(until):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _is_due(self) -> bool:
        """Whether a batch is full, or no other receipt is expected."""
        full = (
            len(self._waiting) >= BATCH_MAX
            or sum(waiting.size_bytes for waiting in self._waiting) >= BATCH_MAX_BYTES // 2
        )
        return full or (bool(self._waiting) and not self._to_come())

    def _next_group(self) -> list[_Waiting]:
        """As many receipts as a batch holds, one for each attempt: that of another lease goes into the next batch."""
        group: list[_Waiting] = []
        size_bytes, attempts = _HEAD_BYTES, set()
        while self._waiting and len(group) < BATCH_MAX:
            waiting = self._waiting[0]
            size_bytes += waiting.size_bytes + _EACH_BYTES
            if size_bytes > BATCH_MAX_BYTES or waiting.receipt.attempt_id in attempts:
                break
            attempts.add(waiting.receipt.attempt_id)
            group.append(self._waiting.popleft())
        return group

    async def _keep(self, group: list[_Waiting]) -> None:
        batch = batch_bytes([waiting.receipt for waiting in group])
        self._reporting.answered.note((waiting.receipt.attempt_id.bytes, waiting.receipt.lease) for waiting in group)
        await keep_reporting(self._reporting, ReceiptsMessage(batch, sign_batch(self._identity, batch)))
        for waiting in group:
            if not waiting.is_kept.done():
                waiting.is_kept.set_result(None)
        log.info("receipts kept for the pool", count=len(group))


async def keep_reporting(reporting: Reporter, report: Report) -> None:
    """Report what the pool must know, and try again until the disk takes it."""
    while not await reporting.report(report):  # noqa: ASYNC110  # nobody says when a disk has room again
        await asyncio.sleep(AGAIN_S)
