"""What happens to accounts, as events. All of it is audited; an account's owner may read what concerns them."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event


@dataclass(frozen=True)
class AccountSubject:
    """What events about one account share."""

    account_id: UUID

    @property
    def subject(self) -> str:
        return f"account:{self.account_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class PoolSetUp(AccountSubject, Event, kind="pool.set_up", audited=True):
    """The first operator used the set-up link."""


@dataclass(frozen=True)
class AccountMade(AccountSubject, Event, kind="account.made", audited=True):
    """Somebody confirmed their address, and has an account."""

    roles: tuple[str, ...]


@dataclass(frozen=True)
class AccountDeleted(AccountSubject, Event, kind="account.deleted", audited=True):
    """Its owner deleted an account."""


@dataclass(frozen=True)
class AddressChanged(AccountSubject, Event, kind="account.address_changed", audited=True):
    """An account has another e-mail address."""


@dataclass(frozen=True)
class PasswordChanged(AccountSubject, Event, kind="account.password_changed", audited=True):
    """An account has another password: its owner changed it, or reset it by mail."""

    how: str


@dataclass(frozen=True)
class RolesChanged(AccountSubject, Event, kind="account.roles_changed", audited=True):
    """An account has other roles."""

    roles: tuple[str, ...]
    reason: str
    by: str


@dataclass(frozen=True)
class KycChanged(AccountSubject, Event, kind="account.kyc_changed", audited=True):
    """A provider asked to be verified, or an operator decided."""

    state: str
    reason: str
    by: str


@dataclass(frozen=True)
class AccountBlocked(AccountSubject, Event, kind="account.blocked", audited=True):
    """An operator blocked an account, or unblocked it."""

    blocked: bool
    reason: str
    by: str


@dataclass(frozen=True)
class LoggedIn(AccountSubject, Event, kind="session.began", audited=True):
    """Somebody logged in."""

    session_id: UUID
    address: str
    user_agent: str
    second_factor: bool


@dataclass(frozen=True)
class LoginFailed(Event, kind="session.login_failed", audited=True):
    """Somebody could not log in. Without an account the address they typed is not told."""

    account_id: UUID | None
    address: str
    result: str

    @property
    def subject(self) -> str:
        return f"account:{self.account_id}" if self.account_id else "pool"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,) if self.account_id else ()


@dataclass(frozen=True)
class SessionsEnded(AccountSubject, Event, kind="session.ended", audited=True):
    """Sessions of an account ended."""

    sessions: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class SessionMoved(AccountSubject, Event, kind="session.moved", audited=True):
    """A session goes on from another browser or network."""

    session_id: UUID
    address: str
    user_agent: str


@dataclass(frozen=True)
class SecondFactorChanged(AccountSubject, Event, kind="account.second_factor_changed", audited=True):
    """The second factor was switched on or removed, or has new recovery codes."""

    what: str
    by: str


@dataclass(frozen=True)
class RecoveryCodeUsed(AccountSubject, Event, kind="account.recovery_code_used", audited=True):
    """Somebody logged in with a recovery code."""

    left: int


@dataclass(frozen=True)
class KeyMade(AccountSubject, Event, kind="key.made", audited=True):
    """An API key was made; after a rotation it names the one it replaces."""

    key_id: UUID
    name: str
    prefix: str
    role: str
    scopes: tuple[str, ...]
    replaces: UUID | None


@dataclass(frozen=True)
class KeyRevoked(AccountSubject, Event, kind="key.revoked", audited=True):
    """An API key was revoked."""

    key_id: UUID
    name: str


@dataclass(frozen=True)
class AuthorisationFailed(Event, kind="pool.authorisation_failed", audited=True):
    """A caller asked for what they may not do, or showed a token or key that is not good; so many times lately."""

    caller: str
    address: str
    route: str
    refusal: str
    times: int
