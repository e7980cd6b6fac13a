"""Master keys and how they are written. A master key wraps the pool's data keys and is never in its database."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256

_WRITTEN = re.compile(r"[A-Za-z0-9_-]{43}=?")
_DOMAIN = b"tidemill master key\0"


@dataclass(frozen=True)
class MasterKey:
    """32 unguessable bytes. The id tells keys apart and reveals nothing of them."""

    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        return sha256(_DOMAIN + self.key).digest()[:8].hex()


def master_keys_of(text: str) -> tuple[MasterKey, ...] | None:
    """The keys of a text, each as base64url, with white space between them. None if it holds anything else.

    The first one wraps, the others only unwrap.
    """
    words = text.split()
    if not words or not all(_WRITTEN.fullmatch(word) for word in words):
        return None
    keys = (MasterKey(urlsafe_b64decode(word.rstrip("=") + "=")) for word in words)
    return tuple(dict.fromkeys(keys))


def text_of(master: MasterKey) -> str:
    """A key as it is written down."""
    return urlsafe_b64encode(master.key).decode().rstrip("=")
