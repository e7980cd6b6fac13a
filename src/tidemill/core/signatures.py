"""Ed25519 keys, signatures and fingerprints.

A signed statement always begins with its purpose, so that no signature for one purpose can be used for another.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from nacl.bindings import crypto_sign_BYTES
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

SEED_BYTES = 32
KEY_BYTES = 32
SIGNATURE_BYTES = crypto_sign_BYTES


@dataclass(frozen=True)
class Identity:
    """A private key, made from a seed that its owner keeps."""

    seed: bytes = field(repr=False)

    @cached_property
    def key(self) -> bytes:
        """The public key."""
        return bytes(self._signing.verify_key)

    @cached_property
    def _signing(self) -> SigningKey:
        return SigningKey(self.seed)  # deriving it takes as long as a signature

    def sign(self, purpose: str, *parts: bytes) -> bytes:
        return bytes(self._signing.sign(statement(purpose, *parts)).signature)


def is_signed(key: bytes, signature: bytes, purpose: str, *parts: bytes) -> bool:
    """Whether the owner of this key signed exactly these parts for this purpose."""
    if len(key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        VerifyKey(key).verify(statement(purpose, *parts), signature)
    except BadSignatureError:
        return False
    return True


def statement(purpose: str, *parts: bytes) -> bytes:
    """The signed bytes: each part with its length, so that no two lists of parts are encoded alike."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in (purpose.encode(), *parts))


def fingerprint(key: bytes) -> str:
    """A public key as people compare it and tokens carry it."""
    return hashlib.sha256(b"tidemill key\0" + key).hexdigest()
