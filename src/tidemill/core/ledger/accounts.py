"""The kinds of ledger accounts. One table says what each kind may do, what it costs to keep, and who may read it.

An account's id derives from its kind, owner, name and currency, everywhere and for ever, so opening an account twice is
opening it once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from tidemill.core.ids import id_of
from tidemill.core.refusals import Refusal

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_CURRENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}", re.ASCII)
_WRITTEN = re.compile(rf"(?P<kind>[a-z_]+)(:(?P<whose>[\w.-]{{1,64}}))?(@(?P<currency>{_CURRENCY.pattern}))?", re.ASCII)


class AccountKind(StrEnum):
    CUSTOMER = "customer"
    PROVIDER_LOCKED = "provider_locked"
    PROVIDER_AVAILABLE = "provider_available"
    STAKE_ASSIGNED = "stake_assigned"
    STAKE_UNLOCKING = "stake_unlocking"
    COMMISSION = "commission"
    POOLED_REVENUE = "pooled_revenue"
    BONUS_FUND = "bonus_fund"
    AUDIT_BUDGET = "audit_budget"
    BURN = "burn"
    ISSUANCE = "issuance"
    WITHDRAWAL_IN_FLIGHT = "withdrawal_in_flight"
    EXTERNAL = "external"


class Visibility(StrEnum):
    """Who may read an account, besides operators."""

    OWNER = "owner"
    OPERATORS = "operators"
    ANYONE = "anyone"


@dataclass(frozen=True)
class KindRules:
    """`floored`: never below zero, so its balance is kept in a row. Other kinds have no row that batches wait for."""

    floored: bool
    owned: bool
    named: bool
    read_by: Visibility
    meaning: str


RULES: Mapping[AccountKind, KindRules] = {
    AccountKind.CUSTOMER: KindRules(
        True, True, False, Visibility.OWNER, "What a customer has paid in and not yet spent."
    ),
    AccountKind.PROVIDER_LOCKED: KindRules(True, True, False, Visibility.OWNER, "Rewards in their dispute window."),
    AccountKind.PROVIDER_AVAILABLE: KindRules(True, True, False, Visibility.OWNER, "What a provider can withdraw."),
    AccountKind.STAKE_ASSIGNED: KindRules(True, True, False, Visibility.OWNER, "A provider's deposit at risk."),
    AccountKind.STAKE_UNLOCKING: KindRules(True, True, False, Visibility.OWNER, "Deposit on its way back."),
    AccountKind.COMMISSION: KindRules(False, False, False, Visibility.OPERATORS, "What the pool earns."),
    AccountKind.POOLED_REVENUE: KindRules(
        True, False, False, Visibility.ANYONE, "Revenue to be shared at epoch's end."
    ),
    AccountKind.BONUS_FUND: KindRules(True, False, False, Visibility.ANYONE, "What bonuses are paid from."),
    AccountKind.AUDIT_BUDGET: KindRules(True, False, False, Visibility.OPERATORS, "What audits are paid from."),
    AccountKind.BURN: KindRules(False, False, False, Visibility.ANYONE, "Money taken out of use."),
    AccountKind.ISSUANCE: KindRules(False, False, False, Visibility.ANYONE, "Where issued money comes from."),
    AccountKind.WITHDRAWAL_IN_FLIGHT: KindRules(True, True, False, Visibility.OWNER, "Money leaving the pool."),
    AccountKind.EXTERNAL: KindRules(
        False, False, True, Visibility.OPERATORS, "The world outside, one a way in or out."
    ),
}


class FreezeRefusal(Refusal):
    ALREADY_FROZEN = "The account is frozen already; nothing was changed."
    NOT_FROZEN = "The account is not frozen; nothing was changed."


class AccountRefusal(Refusal):
    """What can be wrong with an account as an operator writes it."""

    ACCOUNT_MALFORMED = (
        "An account is written as its id, or as KIND, KIND:OWNER or KIND:NAME with or without @CURRENCY, "
        "such as commission or external:bank@credit."
    )
    ACCOUNT_KIND_UNKNOWN = f"There is no such kind of account; the kinds are {', '.join(AccountKind)}."
    ACCOUNT_OWNER_NEEDED = (
        "An account of this kind has an owner: write KIND:OWNER with the owner's e-mail address or id, such as "
        "customer:anna@example.com."
    )
    ACCOUNT_NAME_NEEDED = "An account of this kind has a name: write KIND:NAME, such as external:bank."
    ACCOUNT_OF_THE_POOL = "An account of this kind is the pool's own: write KIND alone."


@dataclass(frozen=True)
class LedgerAccount:
    """One account. `owner_id` is its owner; `name` tells accounts of one kind apart, such as the ways in and out."""

    kind: AccountKind
    owner_id: UUID | None = None
    name: str = ""
    currency: str = "credit"

    def __post_init__(self) -> None:
        rules = RULES[self.kind]
        assert rules.owned == (self.owner_id is not None), (
            f"{self.kind} accounts {'have' if rules.owned else 'have no'} owner"
        )
        assert rules.named == bool(self.name), f"{self.kind} accounts {'have' if rules.named else 'have no'} name"

    @cached_property
    def id(self) -> UUID:
        """The hash of what the account is."""
        return id_of("\x1f".join((self.kind, str(self.owner_id or ""), self.name, self.currency)))


def account_named(text: str, currency: str = "credit") -> LedgerAccount | UUID | AccountRefusal:
    """The account an operator means: an id, or a description, in this currency unless the text names another."""
    if (account_id := _uuid(text)) is not None:
        return account_id
    written = _WRITTEN.fullmatch(text)
    currency = (written and written["currency"]) or currency
    if not written or not _CURRENCY.fullmatch(currency):
        return AccountRefusal.ACCOUNT_MALFORMED
    if written["kind"] not in set(AccountKind):
        return AccountRefusal.ACCOUNT_KIND_UNKNOWN
    kind = AccountKind(written["kind"])
    return _account(kind, RULES[kind], written["whose"] or "", currency)


def _account(kind: AccountKind, rules: KindRules, owner: str, currency: str) -> LedgerAccount | AccountRefusal:
    owner_id = _uuid(owner)
    if rules.owned:
        return LedgerAccount(kind, owner_id, "", currency) if owner_id else AccountRefusal.ACCOUNT_OWNER_NEEDED
    if rules.named:
        return LedgerAccount(kind, None, owner, currency) if owner else AccountRefusal.ACCOUNT_NAME_NEEDED
    return AccountRefusal.ACCOUNT_OF_THE_POOL if owner else LedgerAccount(kind, currency=currency)


def _uuid(text: str) -> UUID | None:
    return UUID(text) if _UUID.fullmatch(text) else None
