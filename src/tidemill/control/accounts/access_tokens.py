"""Access tokens: short-lived JWTs, signed with an Ed25519 key that is replaced now and then.

A token names its session and nothing else. What the session may do is looked up, so a token never outlives a right.
Every process signs with the newest key, and accepts all keys whose tokens may still be valid.
"""

from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tidemill.control.parts import Parts
from tidemill.core.accounts.sessions import Session
from tidemill.core.clock import SECOND, Instant
from tidemill.store.accounts import signing_keys
from tidemill.store.accounts.signing_keys import SigningKey

_ALGORITHM = "EdDSA"
_LOOK_US = SECOND
"""A token with an unknown key makes us look for new keys, but not more often than this."""


class AccessTokens:
    """Signs and reads access tokens."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lifetime_us = int(parts.settings.login.access_token_s * SECOND)
        self._key_us = int(parts.settings.login.signing_key_s * SECOND)
        self._private: tuple[str, Ed25519PrivateKey] | None = None
        self._public: dict[str, Ed25519PublicKey] = {}
        self._looked_at = Instant(0)

    @property
    def lifetime_s(self) -> int:
        return self._lifetime_us // SECOND

    async def renew(self, now: Instant) -> None:
        """Make a signing key if the newest is old, forget keys whose tokens have all expired, and load the rest."""
        key = _new_key(self._parts.ids.new(now), now)
        async with self._parts.loop_database.connection() as connection:
            newest_since = Instant(now - self._key_us)
            await signing_keys.make(connection, key, unless_since=newest_since, keyring=self._parts.keyring)
            await signing_keys.forget(connection, Instant(now - self._key_us - 2 * self._lifetime_us - 60 * SECOND))
        await self._load(now)

    def sign(self, session: Session, now: Instant) -> str:
        assert self._private, "a process has a signing key before it serves"
        key_id, key = self._private
        claims = {
            "sub": str(session.account_id),
            "sid": str(session.id),
            "iat": now // SECOND,
            "exp": (now + self._lifetime_us) // SECOND,
        }
        return jwt.encode(claims, key, _ALGORITHM, headers={"kid": key_id})

    async def session_of(self, token: str, now: Instant) -> tuple[UUID, Instant] | None:
        """The session of a token, and its expiry; None if we did not sign it, or it has expired."""
        key = await self._key_of(token, now)
        if key is None:
            return None
        try:
            # Compare times here: the database's clock counts, not this machine's.
            claims = jwt.decode(
                token, key, [_ALGORITHM], options={"verify_exp": False, "verify_iat": False, "require": ["sid", "exp"]}
            )
            expires_at = Instant(int(claims["exp"]) * SECOND)
            return (UUID(claims["sid"]), expires_at) if now < expires_at else None
        except (jwt.InvalidTokenError, ValueError):
            return None

    async def _key_of(self, token: str, now: Instant) -> Ed25519PublicKey | None:
        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
        except (jwt.InvalidTokenError, ValueError):
            return None
        if key_id not in self._public and not 0 <= now - self._looked_at < _LOOK_US:
            await self._load(now)
        return self._public.get(key_id)

    async def _load(self, now: Instant) -> None:
        self._looked_at = now
        async with self._parts.loop_database.connection() as connection:
            keys = await signing_keys.listed(connection, self._parts.keyring)
        self._public = {str(key.id): Ed25519PublicKey.from_public_bytes(key.public) for key in keys}
        self._private = (str(keys[0].id), Ed25519PrivateKey.from_private_bytes(keys[0].private)) if keys else None


def _new_key(key_id: UUID, now: Instant) -> SigningKey:
    private = Ed25519PrivateKey.generate()
    return SigningKey(
        key_id,
        private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()),
        private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw),
        now,
    )
