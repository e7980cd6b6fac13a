"""An account of the ledger as commands take it and show it."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

import typer

from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.currency import CREDIT, kept_currency, shown_currency
from tidemill.core.ledger import LedgerAccount, account_named
from tidemill.core.money import credits_of
from tidemill.core.refusals import Refusal
from tidemill.core.settings.sections.money import MoneySettings
from tidemill.store.ledger.books import Balance

WRITTEN = "its id, or KIND, KIND:OWNER or KIND:NAME, with @CURRENCY if it is not the pool's own"

LedgerAccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help=f"The account: {WRITTEN}.")]

COLUMNS = ("account", "kind", "of", "posted", "held", "available", "currency", "state")


def read_account(text: str, money: MoneySettings, currency: str = CREDIT) -> LedgerAccount | UUID:
    """The account that a command's argument means."""
    account = account_named(text, currency)
    if isinstance(account, Refusal):
        raise CommandRefused(account.sentence)
    if isinstance(account, LedgerAccount):
        return replace(account, currency=kept_currency(account.currency, money))
    return account


def account_id(text: str, money: MoneySettings) -> UUID:
    account = read_account(text, money)
    return account.id if isinstance(account, LedgerAccount) else account


def account_text(one: Balance) -> str:
    """The account as a command takes it, without its currency."""
    whose = one.owner_id or one.name
    return f"{one.kind.value}:{whose}" if whose else one.kind.value


def account_fields(one: Balance, money: MoneySettings) -> dict[str, object]:
    return {
        "id": str(one.id),
        "kind": one.kind.value,
        "owner": None if one.owner_id is None else str(one.owner_id),
        "address": one.owner_address,
        "name": one.name,
        "currency": shown_currency(one.currency, money),
        "frozen": one.frozen,
        "posted": credits_of(one.posted_uc),
        "held": credits_of(one.held_uc),
        "available": credits_of(one.available_uc),
    }


def account_row(one: Balance, money: MoneySettings) -> tuple[str, ...]:
    amounts = (credits_of(one.posted_uc), credits_of(one.held_uc), credits_of(one.available_uc))
    whose = one.owner_address or str(one.owner_id or one.name or "the pool")
    currency = shown_currency(one.currency, money)
    return str(one.id), one.kind.value, whose, *amounts, currency, "frozen" if one.frozen else "open"
