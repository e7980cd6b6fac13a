"""How a result is sealed: only the readers that the task names can read it, and only as the result of this attempt.

The node makes a key for each result. The content is sealed in pieces, so that it never has to be in memory at once;
their order and the last of them are bound, so a result that was cut, mixed or continued does not open. The key goes
into an envelope for each reader (HPKE: X25519, HKDF-SHA256, AES-256-GCM). Task, attempt and lease are bound in.

Randomness is drawn here only for an envelope's ephemeral key: the library lets nobody bring it.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from tidemill.core.refusals import Refusal
from tidemill.core.signatures import statement

KEY_BYTES = 32
READER_BYTES = 32
PIECE_BYTES = 256 * 1024
INLINE_MAX_BYTES = 16 * 1024
"""A result of at most this size travels in its receipt; a larger one is an artefact."""

_MARK = b"tidemill result\x01"
_TAG_BYTES = 16
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_CONTENT, _KEY = "tidemill result", "tidemill result key"


class ResultRefusal(Refusal):
    RESULT_DOES_NOT_OPEN = (
        "This result does not open: it was cut or changed, or it belongs to another attempt. Fetch it again."
    )
    ENVELOPE_DOES_NOT_OPEN = (
        "The result's key does not open with this private key: use the one whose public half the job was given."
    )


@dataclass(frozen=True)
class ResultBinding:
    """The one attempt that a result belongs to."""

    task_id: UUID
    attempt_id: UUID
    lease: int

    def stated(self, purpose: str) -> bytes:
        return statement(purpose, self.task_id.bytes, self.attempt_id.bytes, self.lease.to_bytes(8, "big"))


@dataclass(frozen=True)
class ReaderKey:
    """The private key with which a reader opens envelopes. Others seal to its public half."""

    private: bytes = field(repr=False)

    @cached_property
    def public(self) -> bytes:
        return public_key(self.private)


def envelope(key: bytes, reader: bytes, bound: ResultBinding) -> bytes:
    """A result's key, sealed for the owner of this public key alone."""
    assert len(key) == KEY_BYTES
    return _SUITE.encrypt(key, X25519PublicKey.from_public_bytes(reader), bound.stated(_KEY))


def opened_envelope(sealed: bytes, private_key: bytes, bound: ResultBinding) -> bytes | ResultRefusal:
    """The key in an envelope."""
    try:
        return _SUITE.decrypt(sealed, X25519PrivateKey.from_private_bytes(private_key), bound.stated(_KEY))
    except (InvalidTag, ValueError):
        return ResultRefusal.ENVELOPE_DOES_NOT_OPEN


def public_key(private_key: bytes) -> bytes:
    """What others seal to, so that the owner of this private key can read it."""
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def is_reader(reader: bytes) -> bool:
    """Whether a key can be sealed to. With a point of small order anybody could open the envelope."""
    if len(reader) != READER_BYTES:
        return False
    try:
        X25519PrivateKey.from_private_bytes(b"\x01" * 32).exchange(X25519PublicKey.from_public_bytes(reader))
    except ValueError:
        return False
    return True


def sealed_bytes(plain_bytes: int) -> int:
    """The size that a result of this size has when sealed."""
    pieces = max(1, -(-plain_bytes // PIECE_BYTES))
    return len(_MARK) + plain_bytes + pieces * _TAG_BYTES


def seal(chunks: Iterable[bytes], key: bytes, bound: ResultBinding) -> Iterator[bytes]:
    """The sealed result, piece by piece. A key seals one result, once: its pieces are numbered from zero."""
    cipher, about = AESGCM(key), bound.stated(_CONTENT)
    yield _MARK
    for number, (piece, is_last) in enumerate(_pieces(chunks, PIECE_BYTES)):
        yield cipher.encrypt(_nonce(number, is_last), piece, about)


def opened(chunks: Iterable[bytes], key: bytes, bound: ResultBinding) -> Iterator[bytes | ResultRefusal]:
    """The result, piece by piece. After a refusal nothing follows, and no piece before it may be used."""
    cipher, about = AESGCM(key), bound.stated(_CONTENT)
    for number, (piece, is_last) in enumerate(_pieces(_behind_mark(chunks), PIECE_BYTES + _TAG_BYTES)):
        try:
            yield cipher.decrypt(_nonce(number, is_last), piece, about)
        except (InvalidTag, ValueError):
            yield ResultRefusal.RESULT_DOES_NOT_OPEN
            return


def _pieces(chunks: Iterable[bytes], size_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Chunks cut to size, each with whether it is the last. There is always a last one, possibly empty."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) > size_bytes:
            yield bytes(buffer[:size_bytes]), False
            del buffer[:size_bytes]
    yield bytes(buffer), True


def _behind_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The sealed pieces. Without the mark at the beginning there are none, and an empty content does not open."""
    begun = bytearray()
    rest = iter(chunks)
    for chunk in rest:
        begun += chunk
        if len(begun) >= len(_MARK):
            break
    if begun.startswith(_MARK):
        yield bytes(begun[len(_MARK) :])
        yield from rest


def _nonce(number: int, is_last: bool) -> bytes:
    return struct.pack(">3xQB", number, is_last)
