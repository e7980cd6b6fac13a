"""Who asks: finds the caller by the credential of a request.

A caller is remembered for a few seconds. It is forgotten at once when something happens to the account: in this process
after the commit, in others as soon as the event reaches them. If that fails, the few seconds are the bound.
"""

import hmac
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from tidemill.control.accounts.access_tokens import AccessTokens
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.control.parts import Parts
from tidemill.core.accounts.keys import KeyRefusal, looks_like_key, refused_key_use
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.roles import Caller, Credential, name_of_account
from tidemill.core.accounts.sessions import SessionRefusal, SessionRules, end_of
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes import passes
from tidemill.core.nodes.life import LifeRefusal
from tidemill.core.nodes.passes import PassRefusal
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import api_keys, sessions
from tidemill.store.accounts.api_keys import KeyHolder
from tidemill.store.accounts.sessions import SessionHolder
from tidemill.store.database import Database
from tidemill.store.nodes import nodes

_REMEMBER_US = 5 * SECOND
_REMEMBERED_MAX = 50_000
_TOKEN_MAX = 4096


class PresentedCredential(NamedTuple):
    """The credential of a request: a token or a key, or a node's pass."""

    text: str
    is_pass: bool = False


class Callers:
    """Finds callers by their token, key or pass. Its memory is bounded and may be dropped at any moment."""

    def __init__(
        self,
        parts: Parts,
        database: Database,
        tokens: AccessTokens,
        rules: SessionRules,
        home_tokens: Mapping[str, Caller],
        pool_fingerprint: str,
    ) -> None:
        self._parts = parts
        self._database = database
        self._tokens = tokens
        self._rules = rules
        self._home_tokens = {token.encode(): caller for token, caller in home_tokens.items()}
        self._pool_fingerprint = pool_fingerprint
        self._remembered: dict[tuple[PresentedCredential, str], tuple[Caller, Instant]] = {}
        self._of_account: dict[UUID, set[tuple[PresentedCredential, str]]] = {}
        self._changes = 0
        self.keys_used: dict[UUID, Instant] = {}
        """When each key was last used; a loop writes it to the database now and then."""

    def remembered(self, credential: PresentedCredential, address: str, now: Instant) -> Caller | None:
        entry = self._remembered.get((credential, address))
        if entry is None or not now < entry[1]:
            return None
        caller = entry[0]
        if caller.key_id is not None:
            self.keys_used[caller.key_id] = now
        return caller

    def knew(self, credential: PresentedCredential, address: str) -> bool:
        """Whether this credential was valid from this address before. Then no limit of strangers holds it up."""
        return (credential, address) in self._remembered

    async def find(self, credential: PresentedCredential, address: str, now: Instant) -> Caller:
        """Find the caller in the database. Refuses credentials that are unknown or no longer valid."""
        changes = self._changes
        try:
            caller, until, account_id = await self._look_up(credential, address, now)
        except RouteRefused:
            self._remembered.pop((credential, address), None)
            raise
        if changes != self._changes:
            return caller  # an account changed during the look-up: the result may be outdated, so do not remember it
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
            self._of_account.clear()
        self._remembered[credential, address] = caller, min(until, Instant(now + _REMEMBER_US))
        if account_id is not None:
            self._of_account.setdefault(account_id, set()).add((credential, address))
        return caller

    def forget(self, accounts: Iterable[UUID]) -> None:
        """Forget the callers of these accounts, because something happened to them."""
        for account_id in accounts:
            self._changes += 1
            for key in self._of_account.pop(account_id, ()):
                self._remembered.pop(key, None)

    async def _look_up(
        self, credential: PresentedCredential, address: str, now: Instant
    ) -> tuple[Caller, Instant, UUID | None]:
        """The caller, until when that holds, and the account whose changes may end it."""
        if credential.is_pass:
            return await self._by_pass(credential.text, now)
        token = credential.text
        if (home_caller := self._by_home_token(token)) is not None:
            return home_caller, Instant(now + _REMEMBER_US), None
        if len(token) > _TOKEN_MAX:
            raise RouteRefused(SessionRefusal.TOKEN_UNKNOWN)
        is_key = looks_like_key(token)
        caller, until = await (self._by_key(token, address, now) if is_key else self._by_token(token, now))
        return caller, until, caller.account_id

    async def still_in(self, caller: Caller, address: str, now: Instant) -> bool:
        """Whether a caller who was let in before would still be let in now, with the same roles."""
        async with self._database.connection() as connection:
            if caller.session_id is not None:
                session = await sessions.holder(connection, caller.session_id)
                return session is not None and not self._refused_session(session, now) and session.roles >= caller.roles
            if caller.key_id is not None:
                key = await api_keys.holder(connection, key_id=caller.key_id)
                return key is not None and not _refused_key(key, address, now) and key.roles >= caller.roles
        return True

    def _by_home_token(self, token: str) -> Caller | None:
        """Whose token it is of those in the home. Each is compared in constant time."""
        shown = token.encode("utf-8", "replace")
        matches = [caller for kept, caller in self._home_tokens.items() if hmac.compare_digest(shown, kept)]
        return matches[0] if matches else None

    async def _by_token(self, token: str, now: Instant) -> tuple[Caller, Instant]:
        session_and_expiry = await self._tokens.session_of(token, now)
        if session_and_expiry is None:
            raise RouteRefused(SessionRefusal.TOKEN_UNKNOWN)
        async with self._database.connection() as connection:
            holder = await sessions.holder(connection, session_and_expiry[0])
        if refusal := self._refused_session(holder, now):
            raise RouteRefused(refusal)
        assert holder
        session = holder.session
        caller = Caller(
            name=name_of_account(session.account_id),
            credential=Credential.SESSION,
            account_id=session.account_id,
            roles=holder.roles,
            session_id=session.id,
            second_factor=session.second_factor,
            fresh_at=session.fresh_at,
        )
        return caller, session_and_expiry[1]

    async def _by_key(self, secret: str, address: str, now: Instant) -> tuple[Caller, Instant]:
        async with self._database.connection() as connection:
            holder = await api_keys.holder(connection, secret)
        if refusal := _refused_key(holder, address, now):
            raise RouteRefused(refusal)
        assert holder
        key = holder.key
        self.keys_used[key.id] = now
        caller = Caller(
            name=name_of_account(key.account_id),
            credential=Credential.KEY,
            account_id=key.account_id,
            roles=frozenset({key.role}) & holder.roles,
            key_id=key.id,
            scopes=key.scopes,
        )
        ends = [at for at in (key.expires_at, key.revoked_at) if at is not None]
        return caller, min(ends, default=Instant(now + _REMEMBER_US))

    async def _by_pass(self, text: str, now: Instant) -> tuple[Caller, Instant, UUID | None]:
        """An unknown node and a wrong key get the same refusal: only the key's owner learns that a node exists."""
        node_pass = unless_refused(passes.read_pass(text, now))
        async with self._database.connection() as connection:
            holder = await nodes.holder(connection, node_pass.node_id)
        if holder is None or not passes.is_of(node_pass, holder.key, self._pool_fingerprint):
            raise RouteRefused(PassRefusal.PASS_WRONG)
        if holder.removed:
            raise RouteRefused(LifeRefusal.NODE_REMOVED)
        if holder.blocked:
            raise RouteRefused(LoginRefusal.ACCOUNT_BLOCKED)
        caller = Caller(name=f"node:{node_pass.node_id}", credential=Credential.NODE, node_id=node_pass.node_id)
        return caller, node_pass.expires_at, holder.account_id

    def _refused_session(self, holder: SessionHolder | None, now: Instant) -> Refusal | None:
        if holder is None or holder.session.ended_at is not None or end_of(holder.session, self._rules, now):
            return SessionRefusal.SESSION_OVER
        return LoginRefusal.ACCOUNT_BLOCKED if holder.blocked else None


def _refused_key(holder: KeyHolder | None, address: str, now: Instant) -> Refusal | None:
    if holder is None:
        return KeyRefusal.KEY_UNKNOWN
    return refused_key_use(holder.key, address, now) or (LoginRefusal.ACCOUNT_BLOCKED if holder.blocked else None)
