"""Draws that nobody can foresee and everybody can check afterwards.

A draw is a keyed hash of what it is about. The key is the epoch's secret, whose hash is published when the epoch opens
and which is itself published when the epoch closes: until then no node can tell which of its results are looked at,
and from then on anyone can see that the pool did not choose.
"""

import hashlib
import hmac
from collections.abc import Iterable
from enum import StrEnum
from uuid import UUID

SECRET_BYTES = 32
_STEPS = 2**53


class Purpose(StrEnum):
    """What a draw decides. One attempt has another draw for each, so that one tells nothing of the next."""

    AUDIT = "audit"
    AUDITOR = "auditor"
    TIE = "tie"
    LOOK_BACK = "look back"
    JURY = "jury"
    CANARY = "canary"


def commitment(secret: bytes) -> bytes:
    """What is published when the epoch opens."""
    assert len(secret) == SECRET_BYTES, "an epoch's secret is 32 random bytes"
    return hashlib.sha256(b"tidemill epoch secret\0" + secret).digest()


def is_secret_of(secret: bytes, published: bytes) -> bool:
    """Whether a secret that was shown when the epoch closed is the one that was committed to."""
    return len(secret) == SECRET_BYTES and hmac.compare_digest(commitment(secret), published)


def draw(secret: bytes, purpose: Purpose, subject: UUID, turn: int = 0) -> float:
    """A number from 0 to below 1, even over all subjects. `turn` tells repeated draws about one subject apart."""
    message = purpose.encode() + b"\0" + subject.bytes + turn.to_bytes(4, "big")
    word = hmac.digest(secret, message, "sha256")[:8]
    return (int.from_bytes(word, "big") >> 11) / _STEPS


def sample(secret: bytes, purpose: Purpose, subjects: Iterable[UUID], size: int) -> list[UUID]:
    """`size` of the subjects, each as likely as any other, whatever order they come in and however often."""
    return sorted(set(subjects), key=lambda subject: (draw(secret, purpose, subject), subject))[:size]
