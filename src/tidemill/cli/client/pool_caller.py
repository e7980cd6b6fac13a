"""Calls a pool with an API key, with the tokens of a login, or with a token from the pool's home.

An access token is good for minutes. When the pool no longer knows it, one command at a time exchanges the refresh token
for new ones. When the pool wants a fresh password, the user is asked for it, and the call is repeated.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tidemill.cli.client.credentials import CredentialsFile, StoredTokens, credentials_folder, stored_pools
from tidemill.cli.client.http_calls import PoolClient, PoolRefused, pool_address
from tidemill.cli.client.local_pool import KEY_VARIABLE, URL_VARIABLE, load_configuration, outside_urls
from tidemill.cli.terminal.output import CommandRefused
from tidemill.cli.terminal.questions import ask_password, with_code
from tidemill.core.accounts.keys import looks_like_key
from tidemill.core.accounts.permissions import PermissionRefusal
from tidemill.core.accounts.roles import OPERATOR_FILE
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.faults import NotRunning
from tidemill.core.settings.process_addresses import own_address, public_url

T = TypeVar("T")

_OVER = {SessionRefusal.SESSION_OVER.code, SessionRefusal.TOKEN_UNKNOWN.code}
_PAGE_MAX = 500
_CUSTOMER = "demonstration/customer.key"


class PoolCaller:
    """A pool, and who we are there."""

    def __init__(self, pool: PoolClient, token: str) -> None:
        self.pool = pool
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
        return act(self._token)

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

    def __init__(self, pool: PoolClient, credentials: CredentialsFile, stored: StoredTokens) -> None:
        super().__init__(pool, stored.access_token)
        self.stored = stored
        self._credentials = credentials

    def acting(self, act: Callable[[str], T]) -> T:
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
            if refused.code in _OVER:
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
    """The pool that the user or the environment names, or this machine's."""
    named = url or os.environ.get(URL_VARIABLE)
    return PoolClient(pool_address(named)) if named else _own_pool()


def pool_caller() -> PoolCaller:
    """Calls with the API key in the environment, as the logged-in user, or as the customer of a demonstration here."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        pool = _pool_of_login()
        return _session_at(pool) or _demonstration_customer(pool) or _refuse_stranger(pool)
    if not looks_like_key(key):
        raise CommandRefused(
            f"{KEY_VARIABLE} does not hold an API key: it begins with tm_ and has 67 letters and digits."
        )
    return PoolCaller(pool_named(None), key)


def session_caller() -> SessionCaller:
    pool = _pool_of_login()
    return _session_at(pool) or _refuse_stranger(pool)


def operator_caller() -> PoolCaller:
    """As `pool_caller`; but a user who can read the home of this machine's pool is its operator without a login."""
    if os.environ.get(KEY_VARIABLE):
        return pool_caller()
    pool = _pool_of_login()
    return _session_at(pool) or _home_operator(pool) or _refuse_stranger(pool)


def keep_session(pool: PoolClient, address: str, opened: Mapping[str, Any]) -> SessionCaller:
    """Store a new session. The one it replaces ends, since its tokens are lost."""
    names = ("session_id", "session_expires_at", "access_token", "refresh_token")
    tokens = StoredTokens(url=pool.url, address=address, **{name: opened[name] for name in names})
    credentials = CredentialsFile(credentials_folder(), pool.url)
    with credentials.locked():
        replaced = credentials.read()
        credentials.write(tokens)
    if replaced is not None:
        _end_replaced(pool, tokens, replaced)
    return SessionCaller(pool, credentials, tokens)


def _end_replaced(pool: PoolClient, tokens: StoredTokens, replaced: StoredTokens) -> None:
    try:
        pool.ask("DELETE", f"/account/sessions/{replaced.session_id}", token=tokens.access_token)
    except PoolRefused:
        return  # it is over, or of another account: then it ends by itself


def _refuse_stranger(pool: PoolClient) -> NoReturn:
    raise CommandRefused(f"You are not logged in at {pool.url}: run `tidemill login`.")


def _session_at(pool: PoolClient) -> SessionCaller | None:
    credentials = CredentialsFile(credentials_folder(), pool.url)
    stored = credentials.read()
    return None if stored is None else SessionCaller(pool, credentials, stored)


def _home_operator(pool: PoolClient) -> PoolCaller | None:
    """The operator, with the token in the pool's home."""
    return _with_secret(pool, OPERATOR_FILE)


def _demonstration_customer(pool: PoolClient) -> PoolCaller | None:
    """The customer of a demonstration, with the key in its home."""
    readable = os.access(load_configuration().settings.home / _CUSTOMER, os.R_OK)
    return _with_secret(pool, _CUSTOMER) if readable else None


def _with_secret(pool: PoolClient, name: str) -> PoolCaller | None:
    """Calls with a secret in the pool's home, if it is this machine's pool and we may read the secret."""
    settings = load_configuration().settings
    if pool.url not in (own_address(settings), public_url(settings)):
        return None
    if outside_urls(settings) is None and not _owned(settings.home):
        raise NotRunning("This pool is not running: start it with `tidemill up`.")
    try:
        return PoolCaller(pool, (settings.home / name).read_text("utf-8").strip())
    except OSError:
        return None


def _owned(home: Path) -> bool:
    """Whether the pool in this home is up: somebody else could listen at its address when it is down."""
    from tidemill.store.embedded import owner_pid

    return owner_pid(home) is not None


def _own_pool() -> PoolClient:
    return PoolClient(pool_address(own_address(load_configuration().settings)))


def _pool_of_login() -> PoolClient:
    """The pool that the environment names, or this machine's, or the only one with a login."""
    if os.environ.get(URL_VARIABLE):
        return pool_named(None)
    own, logged_in = own_address(load_configuration().settings), stored_pools(credentials_folder())
    if own in logged_in or not logged_in:
        return _own_pool()
    if len(logged_in) > 1:
        raise CommandRefused(
            f"You are logged in to several pools: set {URL_VARIABLE} to one of {', '.join(logged_in)}."
        )
    return PoolClient(logged_in[0])
