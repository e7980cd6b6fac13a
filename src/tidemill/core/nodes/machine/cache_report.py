"""What a node has in its cache, as its agent reports it: the digests that it used last.

It is a claim, and only a hint: work goes where its inputs may be already; a node without them fetches them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from tidemill.core.artefacts.artefact import Digest, read_digest
from tidemill.core.bounded_json import Malformed, Most, Text, json_bytes, read_json

CACHE = "cache"
"""The kind of the link's `Facts` that report it."""

DIGESTS_MAX = 200
_BYTES_MAX = 16 * 1024


@dataclass(frozen=True)
class Cached:
    """The body of the kind `cache`."""

    digests: Annotated[tuple[Annotated[str, Text(64)], ...], Most(DIGESTS_MAX)]


def cached_bytes(newest_first: Iterable[Digest]) -> bytes:
    """The report: the newest digests, in an order that does not change when one of them is used again."""
    return json_bytes(Cached(tuple(sorted(digest.text for digest in islice(newest_first, DIGESTS_MAX)))))


def cached_of(body: bytes) -> frozenset[Digest] | Malformed:
    """The reported digests, if all of them can be read."""
    cached = read_json(Cached, body, _BYTES_MAX)
    if isinstance(cached, Malformed):
        return cached
    digests = frozenset(digest for digest in map(read_digest, cached.digests) if isinstance(digest, Digest))
    return digests if len(digests) == len(cached.digests) else Malformed("digests", "a list of digests, each once")
