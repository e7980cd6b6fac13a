"""Calls a pool as somebody: with the tokens of a login, with an API key, or with a secret from the pool's home.

An access token is good for minutes. When the pool no longer knows it, one command at a time exchanges the refresh token
for new ones. Tokens are removed when the pool says that their session is over; a pool that does not know them may be
another one at the same address, so they are kept. When the pool wants a fresh password, the user is asked for it, and
the call is repeated. Every refusal that depends on who asks says who that was.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from tidemill.cli.client.credentials import CredentialsFile, StoredTokens, credentials_folder, locked
from tidemill.cli.client.http_calls import PoolClient, PoolRefused, pool_address
from tidemill.cli.client.identity import KEY_VARIABLE, all_profiles, chosen, named, named_url, own_pool
from tidemill.cli.client.profiles import (
    Profile,
    ProfileKind,
    checked_name,
    free_name,
    kept_profiles,
    profiles_of_home,
    use_from_now,
)
from tidemill.cli.terminal.output import CommandRefused
from tidemill.cli.terminal.questions import ask_password, with_code
from tidemill.core.accounts.permissions import PermissionRefusal
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.faults import Fault

T = TypeVar("T")

_PAGE_MAX = 500


class PoolCaller:
    """A pool, and who we are there."""

    def __init__(self, pool: PoolClient, token: str, profile: Profile) -> None:
        self.pool = pool
        self.profile = profile
        self._token = token

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        return self.acting(lambda token: self.pool.ask(method, path, body, token=token, query=query))

    def acting(self, act: Callable[[str], T]) -> T:
        """Call a function with our token. It may be called again with a newer one."""
        try:
            return self._act(act)
        except PoolRefused as refused:
            from tidemill.cli.client.who_refused import depends_on_who, told

            if not depends_on_who(refused):
                raise
            raise PoolRefused(refused.code, told(refused, self._known(), all_profiles()), refused.status) from None

    def _act(self, act: Callable[[str], T]) -> T:
        return act(self._token)

    def _known(self) -> Profile:
        """Who we are, with the address and the roles that the pool has now, if it tells us."""
        if self.profile.kind in (ProfileKind.DEMONSTRATION, ProfileKind.HOME):
            return self.profile
        try:
            account = self.pool.ask("GET", "/account", token=self._token)["account"]
        except (PoolRefused, Fault):
            return self.profile
        return replace(self.profile, address=account["address"], roles=tuple(sorted(account["roles"])))

    def listed(self, path: str, query: Mapping[str, str], most: int) -> list[dict[str, Any]]:
        """The first rows of a list, page by page."""
        items: list[dict[str, Any]] = []
        page: dict[str, Any] = {"has_more": True, "after": None}
        while page["has_more"] and len(items) < most:
            after = {"after": page["after"]} if page["after"] else {}
            limit = str(min(most - len(items), _PAGE_MAX))
            page = self.ask("GET", path, query={**query, **after, "limit": limit})
            items += page["items"]
        return items


class SessionCaller(PoolCaller):
    """Calls with the tokens of a session, which are kept in a file."""

    def __init__(self, pool: PoolClient, profile: Profile) -> None:
        assert profile.session, "it was kept by a login"
        self._credentials, self.stored = profile.session
        super().__init__(pool, self.stored.access_token, profile)

    def keep_roles(self, roles: tuple[str, ...]) -> None:
        """Note the roles that the pool has told us, for `tidemill profiles`."""
        with self._credentials.locked():
            stored = self._credentials.read()
            if stored is not None and stored.session_id == self.stored.session_id:
                self._credentials.write(replace(stored, roles=" ".join(roles)))

    def _act(self, act: Callable[[str], T]) -> T:
        try:
            return self._refreshed(act)
        except PoolRefused as refused:
            if refused.code != PermissionRefusal.FRESH_LOGIN_NEEDED.code:
                raise
        self._reauthenticate()
        return self._refreshed(act)

    def forget(self) -> None:
        """Remove the tokens of an ended session from the disk, unless another session has replaced them."""
        with self._credentials.locked():
            stored = self._credentials.read()
            if stored is not None and stored.session_id == self.stored.session_id:
                self._credentials.remove()

    def _refreshed(self, act: Callable[[str], T]) -> T:
        try:
            return act(self._token)
        except PoolRefused as refused:
            if refused.code == SessionRefusal.SESSION_OVER.code:
                self.forget()
            if refused.code != SessionRefusal.TOKEN_UNKNOWN.code:
                raise
        self._refresh()
        return act(self._token)

    def _refresh(self) -> None:
        """Get the next tokens. Another command that had the lock before us may have done so already."""
        with self._credentials.locked():
            stored = self._credentials.read()
            if stored is None or stored.session_id != self.stored.session_id:
                raise CommandRefused("You logged out or in again in the meantime: run this once more.")
            if stored.access_token == self._token:
                stored = self._exchange_tokens(stored)
        self._token = stored.access_token

    def _exchange_tokens(self, stored: StoredTokens) -> StoredTokens:
        try:
            opened = self.pool.ask("POST", "/auth/refresh", {"refresh_token": stored.refresh_token})
        except PoolRefused as refused:
            if refused.code == SessionRefusal.SESSION_OVER.code:
                self._credentials.remove()
            raise
        tokens = {name: opened[name] for name in ("access_token", "refresh_token", "session_expires_at")}
        stored = replace(stored, **tokens)
        self._credentials.write(stored)
        return stored

    def _reauthenticate(self) -> None:
        password = ask_password("This needs your password again", otherwise="Run `tidemill login` first.")
        path, body = "/auth/reauthenticate", {"password": password}
        with_code(
            lambda code: self._refreshed(lambda token: self.pool.ask("POST", path, {**body, "code": code}, token=token))
        )


def pool_named(url: str | None) -> PoolClient:
    """The pool that the user names, by its address or by a profile there, or this machine's."""
    if url:
        return PoolClient(pool_address(url))
    address = chosen()[0] if named() else named_url() or own_pool().urls[0]
    return PoolClient(pool_address(address))


def pool_asked() -> PoolClient:
    """The pool that commands ask, for what it tells everybody."""
    return PoolClient(pool_address(chosen()[0]))


def pool_caller() -> PoolCaller:
    """Whoever the command acts as (`identity`), at the pool it asks."""
    url, profile = chosen()
    pool = PoolClient(pool_address(url))
    if profile is None:
        _refuse_stranger(pool)
    if profile.kind is ProfileKind.LOGIN:
        return SessionCaller(pool, profile)
    if profile.secret_file is None:
        return PoolCaller(pool, os.environ[KEY_VARIABLE].strip(), profile)
    return PoolCaller(pool, profile.secret_file.read_text("utf-8", errors="replace").strip(), profile)


def reader() -> Callable[[str, Mapping[str, str]], Any]:
    """Reads what is open to strangers, as whoever the command acts as, or as a stranger."""
    url, profile = chosen()
    if profile is not None:
        caller = pool_caller()
        return lambda path, query: caller.ask("GET", path, query=query)
    pool = PoolClient(pool_address(url))
    return lambda path, query: pool.ask("GET", path, query=query)


def session_caller() -> SessionCaller:
    """As `pool_caller`, for what only a login may do."""
    caller = pool_caller()
    if not isinstance(caller, SessionCaller):
        from tidemill.cli.client.who_refused import NOT_LOGGED_IN, how_to_log_in, who

        raise CommandRefused(
            f"{NOT_LOGGED_IN} {who(caller.profile)}: {how_to_log_in(caller.profile)}, then this again."
        )
    return caller


def keep_session(pool: PoolClient, address: str, opened: Mapping[str, Any], name: str | None = None) -> SessionCaller:
    """Keep a new session as a profile, which is the current one from now on. The session that it replaces ends, since
    its tokens are lost."""
    names = ("session_id", "session_expires_at", "access_token", "refresh_token")
    with locked(credentials_folder(), "profiles"):
        name = _profile_name(pool.url, address, name)
        replaced = next((one.session for one in kept_profiles() if one.name == name), None)
        tokens = StoredTokens(url=pool.url, address=address, name=name, **{field: opened[field] for field in names})
        credentials = replaced[0] if replaced else CredentialsFile(credentials_folder(), pool.url, name)
        with credentials.locked():
            credentials.write(tokens)
        profile = Profile(name, pool.url, ProfileKind.LOGIN, address, session=(credentials, tokens))
        use_from_now(profile)
    if replaced is not None:
        _end_replaced(pool, tokens, replaced[1])
    return SessionCaller(pool, profile)


def _profile_name(url: str, address: str, wanted: str | None) -> str:
    """The name of the profile of a login: the one it has, the wanted one, or a new one."""
    kept = kept_profiles()
    same = next((one for one in kept if (one.url, one.address.lower()) == (url, address.lower())), None)
    if wanted is None:
        others = [one for one in profiles_of_home(own_pool()) if (one.url, one.address) != (url, address.lower())]
        return same.name if same else free_name(address, url, [one.name for one in (*kept, *others)])
    other = next((one for one in kept if one.name == checked_name(wanted) and one is not same), None)
    if other is not None:
        raise CommandRefused(f"{wanted} is {other.address} at {other.url} already: choose another name.")
    return wanted


def _end_replaced(pool: PoolClient, tokens: StoredTokens, replaced: StoredTokens) -> None:
    try:
        pool.ask("DELETE", f"/account/sessions/{replaced.session_id}", token=tokens.access_token)
    except PoolRefused:
        return  # it is over, or of another account: then it ends by itself


def _refuse_stranger(pool: PoolClient) -> NoReturn:
    pool.expect_answer()
    raise CommandRefused(f"You are not logged in at {pool.url}: run `tidemill login`.")
