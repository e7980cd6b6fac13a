"""API keys: how a key is written, what it may be used for, and whether it may be used now from this address.

A key is shown once and stored as a hash. It acts in one role of its account, within its scopes, from its networks,
until it expires. After a rotation the old key works until the overlap ends.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from uuid import UUID

from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.clock import Instant
from tidemill.core.references import refused_name
from tidemill.core.refusals import Refusal

SECRET_BYTES = 40
KEYS_MAX = 100
NETWORKS_MAX = 50
NAME_MAX = 100
_MARK = "tm_"
_PREFIX = 11
_WRITTEN = re.compile(r"tm_[a-z2-7]{64}")

OF_THE_POOL = frozenset({Scope.METRICS_READ, Scope.POOL_READ, Scope.POOL_WRITE})
"""Scopes of operators' keys only."""

IpNetwork = IPv4Network | IPv6Network


class KeyRefusal(Refusal):
    KEY_UNKNOWN = "This API key is not known to the pool, was revoked, or its time is over: make a new one."
    KEY_NOT_FROM_HERE = "This API key may not be used from your address: see its allowed networks."
    UNKNOWN_KEY = "You have no such API key: GET /api/v1/account/keys lists them."
    TOO_MANY_KEYS = f"An account has at most {KEYS_MAX} API keys: revoke one first."
    KEY_NAME_MALFORMED = f"A key's name is 1 to {NAME_MAX} printable characters: choose such a one."
    KEY_NETWORKS_MALFORMED = (
        f"Allowed networks are up to {NETWORKS_MAX} addresses or ranges such as 203.0.113.0/24 or 2001:db8::/32."
    )
    KEY_EXPIRES_IN_THE_PAST = "A key's time must end in the future: give a later `expires_at`, or none."
    KEY_ROLE_MISSING = "A key acts in a role of its account: choose one that you have."
    KEY_SCOPES_MISSING = "A key needs at least one scope, and the pool's scopes are for operators' keys only."
    KEY_ROTATED = "This key was rotated already: rotate its successor."
    SPENDING_CAP_REACHED = "This API key's spending cap is reached: raise it with a new key, or use another."


@dataclass(frozen=True)
class ApiKey:
    """A key as the database holds it; of the secret only the prefix is stored in the clear.

    `first_id` is the first of a chain of rotated keys; they share one spending cap. The defaults describe a key that
    was never used, never expires and may be used from everywhere.
    """

    id: UUID
    account_id: UUID
    name: str
    role: Role
    scopes: frozenset[Scope]
    made_at: Instant
    first_id: UUID
    prefix: str = ""
    networks: tuple[str, ...] = ()
    spending_cap_uc: int | None = None
    spent_uc: int = 0
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None
    successor_id: UUID | None = None


def write_key(entropy: bytes) -> str:
    """A new key as it is shown, once. Lower-case letters and digits, so that it can be read aloud."""
    return _MARK + base64.b32encode(entropy).decode().lower()


def looks_like_key(text: str) -> bool:
    return _WRITTEN.fullmatch(text) is not None


def key_prefix(key: str) -> str:
    """The part of a key that may be shown later."""
    return key[:_PREFIX]


def key_sha256(key: str) -> bytes:
    """The stored form of a key. A key has 320 random bits, so a fast hash is enough."""
    return hashlib.sha256(key.encode()).digest()


def refused_key_use(key: ApiKey, address: str, now: Instant) -> KeyRefusal | None:
    if key.revoked_at is not None and now >= key.revoked_at:
        return KeyRefusal.KEY_UNKNOWN
    if key.expires_at is not None and now >= key.expires_at:
        return KeyRefusal.KEY_UNKNOWN
    return None if not key.networks or _within(address, key.networks) else KeyRefusal.KEY_NOT_FROM_HERE


def refused_key(
    *, name: str, role: Role, scopes: frozenset[Scope], expires_at: Instant | None, held: frozenset[Role], now: Instant
) -> Refusal | None:
    """Why an account with these roles may not have such a key."""
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable() or not name.strip():
        return KeyRefusal.KEY_NAME_MALFORMED
    if refusal := refused_name(name):
        return refusal
    if role not in held:
        return KeyRefusal.KEY_ROLE_MISSING
    of_the_pool = scopes & OF_THE_POOL
    if not scopes or (of_the_pool and role is not Role.OPERATOR):
        return KeyRefusal.KEY_SCOPES_MISSING
    if expires_at is not None and expires_at <= now:
        return KeyRefusal.KEY_EXPIRES_IN_THE_PAST
    return None


def parse_networks(texts: list[str]) -> tuple[str, ...] | KeyRefusal:
    """The networks in their shortest form; an address alone is a network of one. Zones are refused."""
    if any("%" in text for text in texts):
        return KeyRefusal.KEY_NETWORKS_MALFORMED
    try:
        networks: list[IpNetwork] = [ip_network(text.strip(), strict=False) for text in texts]
    except ValueError:
        return KeyRefusal.KEY_NETWORKS_MALFORMED
    return tuple(map(str, networks)) if len(networks) <= NETWORKS_MAX else KeyRefusal.KEY_NETWORKS_MALFORMED


def _within(address: str, networks: tuple[str, ...]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in ip_network(network) for network in networks)
