"""Which bytes of an artefact a request asks for, by RFC 9110: one range, all of them, or a range that is not there.

A header that we cannot read, or that asks for several ranges, is answered with all bytes, as the RFC allows.
"""

import re

from tidemill.core.artefacts.artefact import Digest, checked_range
from tidemill.core.artefacts.refusals import ArtefactRefusal

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


def etag(digest: Digest) -> str:
    """An artefact's ETag. Its bytes never change, so their digest is a strong one."""
    return f'"{digest}"'


def has_bytes(digest: Digest, if_none_match: str | None) -> bool:
    """Whether the caller has the bytes already."""
    etags = [text.strip().removeprefix("W/") for text in (if_none_match or "").split(",")]
    return "*" in etags or etag(digest) in etags


def asked_range(
    digest: Digest, size_bytes: int, wish: str | None, if_range: str | None
) -> tuple[int, int] | ArtefactRefusal | None:
    """First byte and end of the range; None for all bytes."""
    match = _RANGE.fullmatch((wish or "").strip())
    if match is None or match[0] == "bytes=-" or (if_range is not None and if_range.strip() != etag(digest)):
        return None
    first, final = match[1], match[2]
    if not first:
        count = int(final)
        return (max(0, size_bytes - count), size_bytes) if count and size_bytes else ArtefactRefusal.RANGE_NOT_THERE
    if final and int(final) < int(first):
        return None
    if int(first) >= size_bytes:
        return ArtefactRefusal.RANGE_NOT_THERE
    return checked_range(int(first), int(final) + 1 if final else None, size_bytes)
