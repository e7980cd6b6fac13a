"""How requests to an S3-compatible server are signed: AWS Signature Version 4. Pure: the caller brings the time.

Every request is signed over its method, its path and query, and the SHA-256 of its body, so the server itself detects
bytes that were damaged on the way. We would use nothing else of a client library with forty dependencies.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from tidemill.core.clock import SECOND, Instant

_ALGORITHM = "AWS4-HMAC-SHA256"
_SIGNED = "host;x-amz-content-sha256;x-amz-date"


@dataclass(frozen=True)
class S3Credentials:
    """The keys that sign requests, and their region."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str


def query_text(query: Mapping[str, str]) -> str:
    """A query as it is signed and sent: sorted, everything escaped that is not plain."""
    return "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in sorted(query.items()))


def path_text(*names: str) -> str:
    """A path as it is signed and sent."""
    return "".join(f"/{quote(name, safe='/-_.~')}" for name in names)


def signed_headers(
    credentials: S3Credentials, method: str, host: str, target: tuple[str, str], body_sha256: str, now: Instant
) -> dict[str, str]:
    """The headers that sign a request. `target` is its path and its query, as they are sent."""
    stamp = datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y%m%dT%H%M%SZ")
    header_lines = f"host:{host}\nx-amz-content-sha256:{body_sha256}\nx-amz-date:{stamp}\n"
    request = "\n".join((method, *target, header_lines, _SIGNED, body_sha256))
    scope = f"{stamp[:8]}/{credentials.region}/s3/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(_key(credentials, stamp[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    return {
        "host": host,
        "x-amz-content-sha256": body_sha256,
        "x-amz-date": stamp,
        "authorization": f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={_SIGNED}, Signature={signature}",
    }


def _key(credentials: S3Credentials, day: str) -> bytes:
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (day, credentials.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _escaped(text: str) -> str:
    return quote(text, safe="-_.~")
