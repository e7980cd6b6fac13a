"""Which bytes of an artefact a request asks for, as RFC 9110 has it: one range, the whole, or nothing that is there.

What cannot be understood, and what asks for several ranges at once, is answered with the whole: a range is a wish.
"""

import re

from tidemill.core.artefacts.artefact import Digest, checked_range
from tidemill.core.artefacts.refusals import ArtefactRefusal

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


def etag(digest: Digest) -> str:
    """An artefact's ETag. Its bytes never change, so their digest is as strong a one as there can be."""
    return f'"{digest}"'


def has_bytes(digest: Digest, if_none_match: str | None) -> bool:
    """Whether the caller has the bytes already."""
    given = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    return "*" in given or etag(digest) in given


def asked_range(
    digest: Digest, size_bytes: int, wish: str | None, if_range: str | None
) -> tuple[int, int] | ArtefactRefusal | None:
    """First byte and end of the range; None for the whole."""
    match = _RANGE.fullmatch((wish or "").strip())
    if match is None or match[0] == "bytes=-" or (if_range is not None and if_range.strip() != etag(digest)):
        return None
    first, last = match[1], match[2]
    if not first:
        count = int(last)
        return (max(0, size_bytes - count), size_bytes) if count and size_bytes else ArtefactRefusal.RANGE_NOT_THERE
    if last and int(last) < int(first):
        return None
    if int(first) >= size_bytes:
        return ArtefactRefusal.RANGE_NOT_THERE
    return checked_range(int(first), int(last) + 1 if last else None, size_bytes)
