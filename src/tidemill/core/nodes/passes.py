"""Passes: how a node proves its identity over HTTP, outside its link.

A node signs its own pass with its own key, for minutes, for one pool: a stolen pass is soon worthless, and worthless
elsewhere. Whether the node is still in the pool is looked up each time. Pure: the caller brings the time and the node's
key.
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
    """The content of a pass. It counts only with the signature of that node's key."""

    node_id: UUID
    expires_at: Instant
    signature: bytes = field(repr=False)


def write_pass(identity: Identity, pool_fingerprint: str, node_id: UUID, expires_at: Instant) -> str:
    """A pass as it goes into `Authorization: Node …`."""
    signed = identity.sign(_PURPOSE, *_parts(pool_fingerprint, node_id, expires_at))
    return base64.urlsafe_b64encode(node_id.bytes + _expiry(expires_at) + signed).decode().rstrip("=")


def read_pass(text: str, now: Instant) -> NodePass | PassRefusal:
    """A pass as it arrived, if it is valid at this time. `is_of` checks who signed it."""
    if not _WRITTEN.fullmatch(text):
        return PassRefusal.PASS_MALFORMED
    try:
        decoded = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error:
        return PassRefusal.PASS_MALFORMED
    assert len(decoded) == _BYTES
    node_pass = NodePass(UUID(bytes=decoded[:16]), Instant(int.from_bytes(decoded[16:24], "big")), decoded[24:])
    if now >= node_pass.expires_at:
        return PassRefusal.PASS_OVER
    return PassRefusal.PASS_TOO_LONG if node_pass.expires_at - now > LIFETIME_MAX_US else node_pass


def is_of(node_pass: NodePass, key: bytes, pool_fingerprint: str) -> bool:
    """Whether the node with this key wrote the pass, for this pool."""
    return is_signed(
        key, node_pass.signature, _PURPOSE, *_parts(pool_fingerprint, node_pass.node_id, node_pass.expires_at)
    )


def _parts(pool_fingerprint: str, node_id: UUID, expires_at: Instant) -> tuple[bytes, bytes, bytes]:
    return bytes.fromhex(pool_fingerprint), node_id.bytes, _expiry(expires_at)


def _expiry(expires_at: Instant) -> bytes:
    return expires_at.to_bytes(_EXPIRY_BYTES, "big")
