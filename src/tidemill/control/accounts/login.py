"""Logging in: limits first, then the lock, then the password, then the second factor. Every try is recorded.

Behind a lock only the right password with the right code gets in; everything else is refused as the lock refuses.

An address without an account goes the same way and takes as long, so neither words nor time reveal anything.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from tidemill.control.context import Control
from tidemill.control.http.guard import limited_by_address
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.control.notices.letters import tell
from tidemill.core.accounts.account import Account
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.lockout import Failures, LockRules, LoginLock, LoginRefusal, lock_of
from tidemill.core.accounts.roles import Caller
from tidemill.core.accounts.second_factor import SecondFactorRefusal, is_time_code, normal_code
from tidemill.core.accounts.sessions import Session, SessionOrigin
from tidemill.core.clock import SECOND, Instant
from tidemill.core.notices.mail import LetterKind, LetterValue
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import accounts, logins, second_factors, sessions
from tidemill.store.accounts.logins import LoginResult
from tidemill.store.query import Connection

_REFUSALS: dict[LoginResult, Refusal] = {
    LoginResult.FAILED: LoginRefusal.LOGIN_FAILED,
    LoginResult.CODE_WRONG: LoginRefusal.LOGIN_FAILED,
    LoginResult.CODE_MISSING: LoginRefusal.SECOND_FACTOR_NEEDED,
    LoginResult.BLOCKED: LoginRefusal.ACCOUNT_BLOCKED,
}

_DOOR = "POST /api/v1/auth/login"
_NOBODY = UUID(int=0)
"""No account has this id."""

_EVEN_STEP_S = 0.1


@dataclass(frozen=True)
class LoginCredentials:
    """What somebody logs in with."""

    address: Address
    password: str
    code: str | None


@dataclass(frozen=True)
class _Door:
    """An account that somebody wants to enter, its failures so far, and the lock before it."""

    account: Account | None
    failures: Failures
    lock: LoginLock | None


@dataclass(frozen=True)
class OpenSession:
    """A session that has just begun or goes on, and the refresh token that is good for it now."""

    session: Session
    refresh_token: str


async def log_in(
    control: Control, credentials: LoginCredentials, device: SessionOrigin, *, remember: bool
) -> OpenSession:
    """Begin a session."""
    door = await _approach(control, credentials.address, device, credentials.code)
    account_read = door.account
    right = await control.passwords.verify(account_read.password_hash if account_read else None, credentials.password)
    now = control.clock.now()
    opened: OpenSession | None = None
    async with control.route_database.transaction() as transaction:
        account = await _lock_unchanged(transaction, account_read)
        result = await _judge(control, transaction, account, credentials, now, door.lock, right=right)
        if account and result is LoginResult.OK:
            opened = await _open(control, transaction, account, device, now, remember=remember)
        elif account and result in (LoginResult.FAILED, LoginResult.CODE_WRONG):
            await _warn_of_lock(control, transaction, account, door.failures, device, now)
        account_id = account_read.id if account_read else None
        await logins.record(transaction, credentials.address, account_id, device, result, ids=control.ids, now=now)
    if opened is None or account is None:
        raise _refused(door.lock, result, now)
    if control.passwords.outdated(account.password_hash):
        await _rehash(control, account, credentials.password)
    return opened


async def reauthenticate(
    control: Control, caller: Caller, device: SessionOrigin, password: str, code: str | None
) -> None:
    """Check the password again, inside a session. A wrong one counts as in a login."""
    assert caller.account_id
    assert caller.session_id
    async with control.route_database.connection() as connection:
        owner = await accounts.get(connection, caller.account_id)
    assert owner, "a caller with a session has an account"
    credentials = LoginCredentials(Address(owner.address), password, code)
    door = await _approach(control, credentials.address, device, code)
    right = await control.passwords.verify(door.account.password_hash if door.account else None, password)
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await _lock_unchanged(transaction, door.account)
        result = await _judge(control, transaction, account, credentials, now, door.lock, right=right)
        if account and result is LoginResult.OK:
            await sessions.freshen(transaction, caller.session_id, second_factor=account.second_factor_on, now=now)
        elif account and result in (LoginResult.FAILED, LoginResult.CODE_WRONG):
            await _warn_of_lock(control, transaction, account, door.failures, device, now)
        await logins.record(transaction, credentials.address, owner.id, device, result, ids=control.ids, now=now)
    control.callers.forget([owner.id])
    if result is not LoginResult.OK:
        raise _refused(door.lock, result, now)


async def show_code(control: Control, account: Account, device: SessionOrigin, code: str) -> None:
    """Check the second factor again, inside a session. A wrong code counts as in a login.

    No password is shown here, so no code opens a lock."""
    address = Address(account.address)
    door = await _approach(control, address, device, code=None)
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        good = await second_factors.use(transaction, account.id, code, control.keyring, control.ids, now)
        result = LoginResult.OK if good else LoginResult.CODE_WRONG
        if not good:
            await _warn_of_lock(control, transaction, account, door.failures, device, now)
        await logins.record(transaction, address, account.id, device, result, ids=control.ids, now=now)
    if not good:
        raise RouteRefused(SecondFactorRefusal.CODE_WRONG)


async def refresh_session(control: Control, refresh_token: str, device: SessionOrigin) -> OpenSession:
    """Exchange a refresh token for the next one. A token that was used before ends the session."""
    now = control.clock.now()
    following = secrets.token_urlsafe(32)
    async with control.route_database.transaction() as transaction:
        session = await sessions.rotate(
            transaction, refresh_token, following, device, rules=control.session_rules, ids=control.ids, now=now
        )
    return OpenSession(unless_refused(session), following)


@asynccontextmanager
async def evenly() -> AsyncIterator[None]:
    """Whatever happens inside, leave after a whole number of time steps.

    So the duration of an answer reveals nothing about what was found.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        yield
    finally:
        await asyncio.sleep(_EVEN_STEP_S - (loop.time() - began) % _EVEN_STEP_S)


async def _approach(control: Control, address: Address, device: SessionOrigin, code: str | None) -> _Door:
    """The door of an account. Refused if it is locked and the code cannot open it."""
    await limited_by_address(control, control.limits.login, device)
    now, rules = control.clock.now(), _lock_rules(control)
    async with control.route_database.transaction() as transaction:
        account = await accounts.find(transaction, address)
        account_id = account.id if account else None
        since = Instant(now - rules.lock_us)
        failures = await logins.failures(transaction, address, account_id, device, since)
        lock = lock_of(failures, rules)
        stays_shut = lock is not None and not lock.opens(code)
        if stays_shut:
            await logins.record(transaction, address, account_id, device, LoginResult.LOCKED, ids=control.ids, now=now)
    if stays_shut:
        control.denials.note("stranger", device.address, _DOOR, LoginRefusal.LOGIN_LOCKED)
        raise _refused(lock, LoginResult.LOCKED, now)
    return _Door(account, failures, lock)


def _refused(lock: LoginLock | None, result: LoginResult, now: Instant) -> RouteRefused:
    """The refusal of a login. Behind a lock it says nothing but that."""
    if lock is None:
        return RouteRefused(_REFUSALS[result])
    return RouteRefused(LoginRefusal.LOGIN_LOCKED, max(1, -(-(lock.until - now) // SECOND)))


async def _lock_unchanged(transaction: Connection, account_read: Account | None) -> Account | None:
    """The account, locked. None if its password has changed since it was read: checking a password takes a while, and
    the old one must not let anybody in after the change. Without an account it takes as long."""
    account = await accounts.locked(transaction, account_read.id if account_read else _NOBODY)
    return account if account and account_read and account.password_hash == account_read.password_hash else None


async def _judge(
    control: Control,
    transaction: Connection,
    account: Account | None,
    credentials: LoginCredentials,
    now: Instant,
    lock: LoginLock | None,
    *,
    right: bool,
) -> LoginResult:
    """What a try comes to. Behind a lock only a wrong code with the right password counts as a failure, so a lock ends
    however many go on trying."""
    if lock is not None and (account is None or not right or not account.second_factor_on):
        return LoginResult.LOCKED
    if account is None or not right:
        return LoginResult.FAILED
    if account.blocked_reason is not None:
        return LoginResult.BLOCKED
    if not account.second_factor_on:
        return LoginResult.OK
    if not credentials.code:
        return LoginResult.CODE_MISSING
    good = await second_factors.use(transaction, account.id, credentials.code, control.keyring, control.ids, now)
    if good and not is_time_code(normal_code(credentials.code)):
        codes_left = await second_factors.codes_left(transaction, account.id)
        await tell(control, transaction, account, LetterKind.RECOVERY_CODE_USED, now, left=codes_left, at=now)
    return LoginResult.OK if good else LoginResult.CODE_WRONG


async def _open(
    control: Control, transaction: Connection, account: Account, device: SessionOrigin, now: Instant, *, remember: bool
) -> OpenSession:
    session = Session(
        id=control.ids.new(now),
        account_id=account.id,
        began_at=now,
        seen_at=now,
        fresh_at=now,
        expires_at=control.session_rules.expires_at(now, remember=remember),
        address=device.address,
        user_agent=device.user_agent,
        remember=remember,
        second_factor=account.second_factor_on,
        ended_at=None,
        ended_why=None,
    )
    refresh_token = secrets.token_urlsafe(32)
    await sessions.begin(transaction, session, refresh_token, control.ids, now)
    if await logins.is_new_device(transaction, account.id, device):
        letter_values: dict[str, LetterValue] = {
            "device": device.user_agent,
            "address": device.address,
            "at": now,
            "link": "/reset",
        }
        await tell(control, transaction, account, LetterKind.NEW_LOGIN, now, **letter_values)
    return OpenSession(session, refresh_token)


async def _warn_of_lock(
    control: Control, transaction: Connection, account: Account, failures: Failures, device: SessionOrigin, now: Instant
) -> None:
    """Write to the owner when this failure locks logins from a network, or from all networks never used before."""
    rules = _lock_rules(control)
    if failures.everywhere + 1 >= rules.everywhere_max:
        attack: dict[str, LetterValue] = {
            "tries": failures.everywhere + 1,
            "until": now + rules.lock_us,
            "link": "/forgot",
        }
        await tell(control, transaction, account, LetterKind.GUESSING, now, **attack)
    if failures.here + 1 == rules.failures_max:
        letter_values: dict[str, LetterValue] = {
            "tries": failures.here + 1,
            "address": device.address,
            "until": now + rules.lock_us,
        }
        await tell(control, transaction, account, LetterKind.ACCOUNT_LOCKED, now, **letter_values)


async def _rehash(control: Control, account: Account, password: str) -> None:
    """Bring a password's hash up to today's rules, now that we have the password."""
    renewed = await control.passwords.hash(password)
    async with control.route_database.connection() as connection:
        await accounts.rehash(connection, account, renewed)


def _lock_rules(control: Control) -> LockRules:
    login = control.settings.login
    return LockRules(login.failures_max, login.failures_everywhere_max, int(login.lock_s * SECOND))
