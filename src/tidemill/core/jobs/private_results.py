"""What a private result holds, as the pool's verification reads it, and the key that its customer is given.

A node that was told to seal its result answers for what it sealed: an envelope that does not open for the pool, pieces
that do not open, or content that is not what was signed, is no result. The envelope for the customer the pool cannot
look into; so it makes one itself, from the key with which it checked the result.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.jobs.receipts import Receipt
from tidemill.core.jobs.results import (
    KEY_BYTES,
    ReaderKey,
    ResultBinding,
    ResultRefusal,
    envelope,
    opened,
    opened_envelope,
)


@dataclass(frozen=True)
class UnsealedResult:
    """What was found of a result: whether it is what was signed, and its plain bytes where they are few enough."""

    is_as_signed: bool
    content: bytes | None = None


NOTHING = UnsealedResult(is_as_signed=False)


def binding_of(receipt: Receipt) -> ResultBinding:
    return ResultBinding(receipt.task_id, receipt.attempt_id, receipt.lease)


def unseal_result(receipt: Receipt, sealed: Iterable[bytes], key: ReaderKey, most_bytes: int) -> UnsealedResult:
    """Open a sealed result, whatever its size; at most so many bytes of it are kept."""
    own = _result_key(receipt, key)
    if isinstance(own, ResultRefusal):
        return NOTHING
    plain, kept = hashlib.sha256(), bytearray()
    for piece in opened(sealed, own, binding_of(receipt)):
        if isinstance(piece, ResultRefusal):
            return NOTHING
        plain.update(piece)
        kept += piece[: most_bytes + 1 - len(kept)]
    if not hmac.compare_digest(plain.digest(), receipt.result_sha256):
        return NOTHING
    return UnsealedResult(is_as_signed=True, content=bytes(kept) if len(kept) <= most_bytes else None)


def envelope_for(receipt: Receipt, key: ReaderKey, customer: bytes) -> bytes | None:
    """The key of a result for its customer. None where the pool could not open it either."""
    own = _result_key(receipt, key)
    return None if isinstance(own, ResultRefusal) else envelope(own, customer, binding_of(receipt))


def _result_key(receipt: Receipt, key: ReaderKey) -> bytes | ResultRefusal:
    """From the first envelope, which is the pool's."""
    own = receipt.envelopes[0] if receipt.envelopes else b""
    found = opened_envelope(own, key.private, binding_of(receipt))
    is_key = isinstance(found, bytes) and len(found) == KEY_BYTES
    return found if is_key else ResultRefusal.ENVELOPE_DOES_NOT_OPEN
