"""An account of the ledger as commands take it and show it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

import typer

from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import at
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.currency import CREDIT, kept_currency, shown_currency
from tidemill.core.ids import short_id
from tidemill.core.ledger import RULES, AccountKind, LedgerAccount, account_named
from tidemill.core.money import credits_of
from tidemill.core.references import FromLast, IdEnd, ObjectKind, read_reference
from tidemill.core.refusals import Refusal
from tidemill.core.settings.sections.money import MoneySettings
from tidemill.store.ledger.books import Balance

WRITTEN = (
    "its id or its last 8 digits, or KIND, KIND:OWNER or KIND:NAME, with @CURRENCY if it is not the pool's own; OWNER "
    "is an e-mail address, an id or the last 8 digits of it"
)

LedgerAccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help=f"The account: {WRITTEN}.")]

COLUMNS = ("account", "kind", "of", "posted", "held", "available", "currency", "state")


def read_account(text: str, money: MoneySettings, currency: str = CREDIT) -> LedgerAccount | UUID:
    """The account that a command's argument means. Of what an end of an id means the pool is asked."""
    if isinstance(read_reference(text, ObjectKind.LEDGER_ACCOUNT), IdEnd | FromLast):
        return UUID(pool_caller().ask("GET", at("/ledger/accounts", text))["id"])
    account = account_named(_with_owners_id(text), currency)
    if isinstance(account, Refusal):
        raise CommandRefused(account.sentence)
    if isinstance(account, LedgerAccount):
        return replace(account, currency=kept_currency(account.currency, money))
    return account


def _with_owners_id(text: str) -> str:
    """The same text, with its owner's id in the place of an address or an end of the id: the pool knows whose it is."""
    kind, _, whose = text.partition(":")
    if kind not in set(AccountKind) or not RULES[AccountKind(kind)].owned:
        return text
    owner, mark, currency = whose.rpartition("@")
    if not mark or "." in currency:  # an address has an @ of its own, and a dot behind it
        owner, mark, currency = whose, "", ""
    if "@" not in owner and not isinstance(read_reference(owner, ObjectKind.ACCOUNT), IdEnd):
        return text
    return f"{kind}:{pool_caller().ask('GET', at('/admin/accounts', owner))['id']}{mark}{currency}"


def account_id(text: str, money: MoneySettings) -> UUID:
    account = read_account(text, money)
    return account.id if isinstance(account, LedgerAccount) else account


def account_text(account: Mapping[str, Any]) -> str:
    """The account as a command takes it, without its currency."""
    owner = short_id(account["owner"]) if account["owner"] else account["name"]
    return f"{account['kind']}:{owner}" if owner else str(account["kind"])


def account_row(account: Mapping[str, Any]) -> tuple[str, ...]:
    owner = account["address"] or short_id(account["owner"] or "") or account["name"] or "the pool"
    amounts = (account["posted"], account["held"], account["available"])
    return short_id(account["id"]), account["kind"], owner, *amounts, account["currency"], _state(account)


def _state(account: Mapping[str, Any]) -> str:
    return "frozen" if account["frozen"] else "open"


def account_fields(balance: Balance, money: MoneySettings) -> dict[str, object]:
    return {
        "id": str(balance.id),
        "kind": balance.kind.value,
        "owner": None if balance.owner_id is None else str(balance.owner_id),
        "address": balance.owner_address,
        "name": balance.name,
        "currency": shown_currency(balance.currency, money),
        "frozen": balance.frozen,
        "posted": credits_of(balance.posted_uc),
        "held": credits_of(balance.held_uc),
        "available": credits_of(balance.available_uc),
    }
