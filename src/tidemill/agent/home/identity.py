"""Who this agent is: its private key, its pool, its node id there, and the pool's addresses.

All of it is in one file that only the agent's user may read, whole at every moment. The file is made once, and no other
identity ever overwrites it: a machine leaves one pool before it joins the next. No message of ours quotes the key.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from tidemill.core.faults import AgentFault
from tidemill.core.nodes.pool_urls import URLS_MAX, is_pool_url
from tidemill.core.signatures import SEED_BYTES, Identity
from tidemill.host.private_files import make_private_file, replace_private_file, sync_directory

_FILE_MAX = 16 * 1024
_FINGERPRINT = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Membership:
    """An identity in a pool. It has no node id until the pool has registered it."""

    identity: Identity
    pool_fingerprint: str
    urls: tuple[str, ...]
    node_id: UUID | None = None


def new_membership(seed: bytes, pool_fingerprint: str, urls: Sequence[str]) -> Membership:
    """A new identity for a pool; `seed` are random bytes."""
    assert len(seed) == SEED_BYTES
    if not _FINGERPRINT.fullmatch(pool_fingerprint):
        raise AgentFault("This is no fingerprint of a pool's key: copy the whole join token, and try again.")
    return Membership(Identity(seed), pool_fingerprint, checked_urls(urls))


def checked_urls(urls: Sequence[str]) -> tuple[str, ...]:
    """The addresses of a pool, each once. Only this machine's own pool may be reached without TLS."""
    if not 0 < len(urls) <= URLS_MAX:
        raise AgentFault(f"A pool has one to {URLS_MAX} addresses: give that many.")
    for number, url in enumerate(urls, start=1):
        if not is_pool_url(url):
            # Do not quote it: somebody may have given a secret by mistake.
            raise AgentFault(
                f"Address {number} is none of a pool: it must begin with https:// and name a host, and no user, query "
                "or fragment; http:// is only for a pool on this machine."
            )
    return tuple(dict.fromkeys(url.rstrip("/") for url in urls))


def make_membership(file: Path, membership: Membership) -> None:
    """Keep a new identity, durably, before anybody hears of it."""
    try:
        make_private_file(file, _text(membership))
    except FileExistsError:
        raise AgentFault(
            f"This machine has joined a pool already ({file}): run `tidemill agent leave` before it joins another."
        ) from None
    except OSError as error:
        raise _unwritable(file, error) from None


def update_membership(
    file: Path, membership: Membership, *, node_id: UUID | None = None, urls: Sequence[str] | None = None
) -> Membership:
    """Keep the node id that the pool gave, or new addresses of the pool. Returns the updated membership."""
    updated = replace(
        membership,
        node_id=membership.node_id if node_id is None else node_id,
        urls=membership.urls if urls is None else checked_urls(urls),
    )
    if updated != membership:
        try:
            replace_private_file(file, _text(updated))
        except OSError as error:
            raise _unwritable(file, error) from None
    return updated


def read_membership(file: Path) -> Membership | None:
    """The identity that was kept, if there is one. A file that others may read is refused."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise AgentFault(
                    f"Others than its owner may use {file}: run `chmod 600 {file}`, and if somebody may have read it, "
                    "leave the pool and join again."
                )
            return _membership(opened.read(_FILE_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AgentFault(f"{file} cannot be read ({error.strerror}): run this as the agent's user.") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        # Leave the cause out: it could quote the key.
        raise AgentFault(
            f"{file} is damaged: put it back from a copy, or move it away and join the pool again."
        ) from None


def forget_membership(file: Path) -> None:
    """Leave the pool for good."""
    try:
        file.unlink(missing_ok=True)
        sync_directory(file.parent)
    except OSError as error:
        raise _unwritable(file, error) from None


def _text(membership: Membership) -> str:
    fields = {
        "seed": base64.b64encode(membership.identity.seed).decode(),
        "pool_fingerprint": membership.pool_fingerprint,
        "urls": list(membership.urls),
        "node_id": None if membership.node_id is None else str(membership.node_id),
    }
    return json.dumps(fields, indent=2) + "\n"


def _membership(text: bytes) -> Membership:
    """Parse the file. Raises one of many errors if it is not ours."""
    fields = json.loads(text)
    try:
        seed = base64.b64decode(fields["seed"], validate=True)
    except binascii.Error:
        raise ValueError("seed") from None
    fingerprint, urls, node_id = fields["pool_fingerprint"], fields["urls"], fields["node_id"]
    sound = len(seed) == SEED_BYTES and isinstance(urls, list) and 0 < len(urls) <= URLS_MAX
    if not (sound and _FINGERPRINT.fullmatch(fingerprint) and all(is_pool_url(url) for url in urls)):
        raise ValueError("membership")
    return Membership(Identity(seed), fingerprint, tuple(urls), None if node_id is None else UUID(node_id))


def _unwritable(file: Path, error: OSError) -> AgentFault:
    return AgentFault(f"{file} cannot be written ({error.strerror}): look at the disk and who may write there.")
