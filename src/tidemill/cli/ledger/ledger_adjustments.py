"""`tidemill ledger`, where it changes the books: adjustments by two operators, and freezing.

An adjustment takes two people, so it goes over HTTP, as the operator who is logged in. Whoever freezes is the system
user that runs the command, whatever its environment says.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.local_pool import connected, load_configuration, operator_name, running_urls
from tidemill.cli.client.pool_caller import operator_caller
from tidemill.cli.ledger.ledger_accounts import (
    WRITTEN,
    LedgerAccountArgument,
    account_fields,
    account_id,
    account_text,
    read_account,
)
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table, report
from tidemill.core.clock import Instant, as_datetime
from tidemill.core.currency import CREDIT, kept_currency, shown_currency
from tidemill.core.ids import Ids
from tidemill.core.ledger import Adjustment, AdjustmentState, LedgerAccount, PostingRefusal
from tidemill.core.money import credits_of, micro_credits
from tidemill.core.refusals import Refusal
from tidemill.core.settings.sections.money import MoneySettings
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.ledger import adjustments as store
from tidemill.store.ledger import books, ledger
from tidemill.store.query import Connection

app = CommandGroup()

T = TypeVar("T")

LedgerEffect = Callable[[Connection, Ids, Instant], Awaitable[T | Refusal]]

_ROUTE = "/ledger/adjustments"
_COLUMNS = ("adjustment", "state", "amount", "currency", "from", "to", "by", "decided", "reason")

Which = Annotated[UUID, typer.Argument(metavar="ADJUSTMENT", help="The adjustment's id.")]
Why = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept.")]


@app.command()
def post(
    debit: Annotated[str, typer.Option(help=f"The account that the money leaves: {WRITTEN}.")],
    credit: Annotated[str, typer.Option(help="The account that it goes to, written in the same way.")],
    amount: Annotated[str, typer.Option(help="How much, with up to six places.")],
    reason: Why,
    currency: Annotated[str, typer.Option(help="In which currency.")] = CREDIT,
    as_json: AsJson = False,
) -> None:
    """Propose a transfer by hand. It is posted when another operator approves it.

    An account that is given by its kind is opened if it is not open yet."""
    amount_uc = micro_credits(amount)
    if isinstance(amount_uc, Refusal):
        raise CommandRefused(amount_uc.sentence)
    money = load_configuration().settings.money
    sides = (read_account(debit, money, currency), read_account(credit, money, currency))
    if any(isinstance(side, LedgerAccount) and side.currency != kept_currency(currency, money) for side in sides):
        raise CommandRefused(PostingRefusal.CURRENCY_MISMATCH.sentence)
    proposed = _propose(sides, amount, currency, reason)
    sentence = f"Proposed as {proposed['id']}. Nothing has moved yet: another operator runs"
    report(f"{sentence} `tidemill ledger approve {proposed['id']}`.", proposed, as_json=as_json)


@app.command()
def adjustments(
    state: Annotated[AdjustmentState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the adjustments, newest first."""
    listed, sides = asyncio.run(_listed(state, limit))
    money = load_configuration().settings.money
    if as_json:
        print_json([_fields(adjustment, money) for adjustment in listed])
    else:
        print_table(_COLUMNS, [_row(adjustment, sides, money) for adjustment in listed])


@app.command()
def approve(adjustment: Which, as_json: AsJson = False) -> None:
    """Approve what another operator has proposed, and post it."""
    settled = operator_caller().ask("POST", f"{_ROUTE}/{adjustment}/approve")
    moved = f"{settled['amount']} {settled['currency']}"
    report(f"Approved and posted: {moved}, proposed by {settled['proposed_by']}.", settled, as_json=as_json)


@app.command()
def reject(adjustment: Which, as_json: AsJson = False) -> None:
    """Reject an adjustment, or take your own back."""
    settled = operator_caller().ask("POST", f"{_ROUTE}/{adjustment}/reject")
    report("Rejected: it will never be posted.", settled, as_json=as_json)


@app.command()
def freeze(account: LedgerAccountArgument, reason: Why, as_json: AsJson = False) -> None:
    """Freeze an account: nothing moves on it, except what is given back to it."""
    _set_frozen(account, reason, frozen=True, as_json=as_json)


@app.command()
def unfreeze(account: LedgerAccountArgument, reason: Why, as_json: AsJson = False) -> None:
    """Let money move on an account again."""
    _set_frozen(account, reason, frozen=False, as_json=as_json)


def _propose(
    sides: tuple[LedgerAccount | UUID, LedgerAccount | UUID], amount: str, currency: str, reason: str
) -> dict[str, Any]:
    """Propose it. Accounts that are given by their kind are opened only when it is refused for lack of them."""
    debit, credit = (str(side.id if isinstance(side, LedgerAccount) else side) for side in sides)
    body = {"debit": debit, "credit": credit, "amount": amount, "currency": currency, "reason": reason}
    operator, described = operator_caller(), [side for side in sides if isinstance(side, LedgerAccount)]
    try:
        proposed: dict[str, Any] = operator.ask("POST", _ROUTE, body)
    except PoolRefused as refused:
        if refused.code != PostingRefusal.UNKNOWN_ACCOUNT.code or not described:
            raise
        _act(lambda c, _, now: ledger.open_accounts(c, described, now))
        proposed = operator.ask("POST", _ROUTE, body)
    return proposed


async def _listed(state: AdjustmentState | None, limit: int) -> tuple[Sequence[Adjustment], Mapping[UUID, str]]:
    """Adjustments, and the names of their accounts."""
    async with connected(running_urls(load_configuration().settings).program) as connection:
        listed = await store.adjustments(connection, state=state, limit=limit)
        ids = {side for adjustment in listed for side in (adjustment.debit_id, adjustment.credit_id)}
        sides = await books.balances(connection, ids=list(ids), limit=len(ids))
        return listed, {side.id: account_text(side) for side in sides}


def _set_frozen(account: str, reason: str, *, frozen: bool, as_json: bool) -> None:
    money = load_configuration().settings.money
    ledger_account_id, by = account_id(account, money), operator_name()
    changed = _act(
        lambda c, ids, now: store.set_frozen(
            c, ledger_account_id, frozen=frozen, reason=reason, by=by, ids=ids, now=now
        )
    )
    sentence = f"{account} is {'frozen: nothing moves on it' if frozen else 'open again'}."
    report(sentence, account_fields(changed, money), as_json=as_json)


def _act(effect: LedgerEffect[T]) -> T:
    """Run an effect in one transaction. A refusal undoes it; otherwise wake everybody who follows the log."""

    async def act() -> T:
        async with connected(running_urls(load_configuration().settings).program) as connection:
            now = await read_clock(connection)
            async with connection.transaction():
                result = await effect(connection, Ids(secrets.randbits), now)
                if isinstance(result, Refusal):
                    raise CommandRefused(result.sentence)
            await events.wake(connection)
            return result

    return asyncio.run(act())


def _fields(adjustment: Adjustment, money: MoneySettings) -> dict[str, object]:
    return {
        "id": str(adjustment.id),
        "debit": str(adjustment.debit_id),
        "credit": str(adjustment.credit_id),
        "amount": credits_of(adjustment.amount_uc),
        "currency": shown_currency(adjustment.currency, money),
        "reason": adjustment.reason,
        "state": adjustment.state.value,
        "proposed_by": adjustment.proposed_by,
        "proposed_at": as_datetime(adjustment.proposed_at).isoformat(),
        "decided_by": adjustment.decided_by,
        "decided_at": None if adjustment.decided_at is None else as_datetime(adjustment.decided_at).isoformat(),
    }


def _row(adjustment: Adjustment, sides: Mapping[UUID, str], money: MoneySettings) -> tuple[str, ...]:
    amount = (credits_of(adjustment.amount_uc), shown_currency(adjustment.currency, money))
    moved = (*amount, sides[adjustment.debit_id], sides[adjustment.credit_id])
    return (
        str(adjustment.id),
        adjustment.state.value,
        *moved,
        adjustment.proposed_by,
        adjustment.decided_by or "",
        adjustment.reason,
    )
