"""Passes: how a node shows who it is when it asks over HTTP, outside its link.

A node writes its own pass with its own key, for minutes, for one pool: what others see of it is soon worth nothing, and
never was elsewhere. Whether the node is still in the pool is looked up each time. Pure: the caller brings the time and
the node's key.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.refusals import Refusal
from tidemill.core.signatures import SIGNATURE_BYTES, Identity, is_signed

LIFETIME_MAX_US = 600 * SECOND
"""The furthest in the future that a pass may end."""

_PURPOSE = "tidemill node pass"
_EXPIRY_BYTES = 8
_BYTES = 16 + _EXPIRY_BYTES + SIGNATURE_BYTES
_WRITTEN = re.compile(r"[A-Za-z0-9_-]{118}", re.ASCII)


class PassRefusal(Refusal):
    PASS_MALFORMED = "This is no pass of a node: write one with the agent of this project."  # noqa: S105
    PASS_OVER = "This pass is over: compare your clock with the `Date` of this answer, and write a new one."  # noqa: S105
    PASS_TOO_LONG = "This pass ends too late: write one that ends within ten minutes of this answer's `Date`."  # noqa: S105
    PASS_WRONG = "The pool knows no node that could have signed this pass: join the machine again with a new token."  # noqa: S105


@dataclass(frozen=True)
class NodePass:
    """What a pass says. It is worth something only with the signature of that node's key."""

    node_id: UUID
    expires_at: Instant
    signature: bytes = field(repr=False)


def write_pass(identity: Identity, pool_fingerprint: str, node_id: UUID, expires_at: Instant) -> str:
    """A pass as it goes into `Authorization: Node …`."""
    signed = identity.sign(_PURPOSE, *_parts(pool_fingerprint, node_id, expires_at))
    return base64.urlsafe_b64encode(node_id.bytes + _expiry(expires_at) + signed).decode().rstrip("=")


def read_pass(text: str, now: Instant) -> NodePass | PassRefusal:
    """A pass as it came, if it is of this time. Who signed it is asked with `is_of`."""
    if not _WRITTEN.fullmatch(text):
        return PassRefusal.PASS_MALFORMED
    try:
        said = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error:
        return PassRefusal.PASS_MALFORMED
    assert len(said) == _BYTES
    shown = NodePass(UUID(bytes=said[:16]), Instant(int.from_bytes(said[16:24], "big")), said[24:])
    if now >= shown.expires_at:
        return PassRefusal.PASS_OVER
    return PassRefusal.PASS_TOO_LONG if shown.expires_at - now > LIFETIME_MAX_US else shown


def is_of(shown: NodePass, key: bytes, pool_fingerprint: str) -> bool:
    """Whether the node with this key wrote the pass, for this pool."""
    return is_signed(key, shown.signature, _PURPOSE, *_parts(pool_fingerprint, shown.node_id, shown.expires_at))


def _parts(pool_fingerprint: str, node_id: UUID, expires_at: Instant) -> tuple[bytes, bytes, bytes]:
    return bytes.fromhex(pool_fingerprint), node_id.bytes, _expiry(expires_at)


def _expiry(expires_at: Instant) -> bytes:
    return expires_at.to_bytes(_EXPIRY_BYTES, "big")
