"""A finished attempt is handed over: its result is uploaded, for hours if it must be, and then its receipt is sent.

The receipt goes last, so whoever has it can have the result, too. A pool that cannot be reached is tried again; one
that refuses the result has given the attempt up.
"""

import asyncio

import structlog

from tidemill.agent.work.attempt_in_hand import AttemptInHand, Stage, StopReason
from tidemill.agent.work.delivery import Delivery
from tidemill.agent.work.workshop import Uploads
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.clock import HOUR, SECOND
from tidemill.core.faults import Fault
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.refusals import Refusal
from tidemill.host.clocks import steady

log = structlog.get_logger()

UPLOAD_US = 24 * HOUR
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


async def hand_over(held: AttemptInHand, receipt: Receipt, uploads: Uploads, delivery: Delivery) -> None:
    """Returns when the receipt is kept for the pool, or the attempt is to be given back."""
    if receipt.artefact is not None and (sentence := await _uploaded(held, receipt.artefact, uploads)):
        held.stop_reason, held.sentence = StopReason.GIVEN_BACK, sentence
        return
    held.stage = Stage.REPORTING
    await delivery.deliver(receipt)


async def _uploaded(held: AttemptInHand, digest: Digest, uploads: Uploads) -> str | None:
    """Why the result is not with the pool; None if it is."""
    held.stage = Stage.UPLOADING
    pause_s, until = FIRST_PAUSE_S, steady() + UPLOAD_US
    while True:
        try:
            answer = await uploads.upload(held.attempt.result, Purpose.RESULT, held.attempt.id, digest)
        except Fault as fault:
            log.info("result not uploaded yet", attempt=str(held.attempt.id), cause=str(fault), again_s=pause_s)
            if steady() + pause_s * SECOND > until:
                return f"The result could not be uploaded. {fault}"
        else:
            return f"The pool did not take the result. {answer.sentence}" if isinstance(answer, Refusal) else None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
