"""An account as the database holds it."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemill.core.accounts.kyc import Kyc
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.roles import CHOSEN_FREELY, Role, RolesByRequest
from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal


class AccountStateRefusal(Refusal):
    UNKNOWN_PERSON = "There is no such account: `tidemill admin accounts` lists them."
    ADDRESS_IN_USE = "Another account uses this address by now: log in with it, or choose another address."
    ALREADY_BLOCKED = "The account is blocked already."
    NOT_BLOCKED = "The account is not blocked."
    LAST_OPERATOR = "This is the pool's last operator: make another one first."
    ROLE_NOT_FREE = "This role is given by an operator: ask one."
    ROLES_MISSING = "An account needs at least one role: leave it one."
    MONEY_LEFT = "There is money left in this account: withdraw it, or wait until what is held is settled, then delete."
    REGISTRATION_PASSWORD = "Type the password that you registered with; if it was not you who registered, do nothing."  # noqa: S105
    MAIL_TOKEN_UNKNOWN = "This link or code is wrong, was used, or is too old: ask for a new letter."  # noqa: S105
    POOL_NOT_SET_UP = "This pool is not set up yet: open the link that `tidemill up` printed."
    SET_UP_ALREADY = "This pool is set up already: log in."
    SET_UP_LINK_WRONG = "This set-up link is not the newest one: use the one that `tidemill up` printed last."


class Language(StrEnum):
    """The languages we write letters in."""

    ENGLISH = "en"
    RUSSIAN = "ru"
    CHINESE = "zh"


@dataclass(frozen=True)
class Account:
    """Somebody with a role in the pool. `password_hash` never leaves the program."""

    id: UUID
    address: str
    password_hash: str
    roles: frozenset[Role]
    language: Language
    kyc: Kyc
    kyc_reason: str
    blocked_reason: str | None
    created_at: Instant
    second_factor_since: Instant | None

    @property
    def second_factor_on(self) -> bool:
        return self.second_factor_since is not None


def roles_taken_on(account: Account, wanted: frozenset[Role], allowed: RolesByRequest) -> frozenset[Role] | Refusal:
    """The roles of an account whose owner chooses these of the free ones. Roles given by an operator stay; a role that
    the pool has closed since is kept by whoever has it."""
    if account.blocked_reason is not None:
        return LoginRefusal.ACCOUNT_BLOCKED
    if not wanted - account.roles <= allowed.roles or not wanted <= CHOSEN_FREELY:
        return AccountStateRefusal.ROLE_NOT_FREE
    return account.roles - CHOSEN_FREELY | wanted or AccountStateRefusal.ROLES_MISSING
