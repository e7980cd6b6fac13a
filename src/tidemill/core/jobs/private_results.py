"""How the pool's verification opens a private result, and the key that its customer gets.

A node that seals its result is responsible for what it sealed: if the pool's envelope or a piece does not open, or the
content is not what the node signed, there is no result. The pool cannot open the customer's envelope; so it makes one
itself, from the key with which it checked the result.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable
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
    """An unsealed result: whether it is what was signed, and whether all of its plain bytes were kept."""

    is_as_signed: bool
    is_kept: bool = False


NOTHING = UnsealedResult(is_as_signed=False)


def binding_of(receipt: Receipt) -> ResultBinding:
    return ResultBinding(receipt.task_id, receipt.attempt_id, receipt.lease)


def unseal_result(
    receipt: Receipt, sealed: Iterable[bytes], key: ReaderKey, keep: Callable[[bytes], object], most_bytes: int
) -> UnsealedResult:
    """Open a sealed result of any size; `keep` is given its pieces, at most so many bytes."""
    own = _result_key(receipt, key)
    if isinstance(own, ResultRefusal):
        return NOTHING
    plain, size_bytes = hashlib.sha256(), 0
    for piece in opened(sealed, own, binding_of(receipt)):
        if isinstance(piece, ResultRefusal):
            return NOTHING
        plain.update(piece)
        size_bytes += len(piece)
        if size_bytes <= most_bytes:
            keep(piece)
    if not hmac.compare_digest(plain.digest(), receipt.result_sha256):
        return NOTHING
    return UnsealedResult(is_as_signed=True, is_kept=size_bytes <= most_bytes)


def envelope_for(receipt: Receipt, key: ReaderKey, customer: bytes) -> bytes | None:
    """The key of a result, sealed for its customer. None where the pool could not open the result either."""
    own = _result_key(receipt, key)
    return None if isinstance(own, ResultRefusal) else envelope(own, customer, binding_of(receipt))


def _result_key(receipt: Receipt, key: ReaderKey) -> bytes | ResultRefusal:
    """The result's key, from the first envelope, which is the pool's."""
    own = receipt.envelopes[0] if receipt.envelopes else b""
    result_key = opened_envelope(own, key.private, binding_of(receipt))
    is_key = isinstance(result_key, bytes) and len(result_key) == KEY_BYTES
    return result_key if is_key else ResultRefusal.ENVELOPE_DOES_NOT_OPEN
