"""Hands a finished attempt over: uploads its result, for hours if need be, and then sends its receipt.

The receipt goes last, so that whoever has it can get the result, too. A pool that cannot be reached is tried again. If
the pool refuses the result, the attempt is given back.
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


async def hand_over(in_hand: AttemptInHand, receipt: Receipt, uploads: Uploads, delivery: Delivery) -> None:
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
