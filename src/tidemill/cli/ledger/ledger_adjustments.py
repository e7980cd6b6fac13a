"""`tidemill ledger`, where it changes the books: adjustments by two operators, and freezing.

An adjustment takes two people, so it goes over HTTP, as the operator who is logged in. Whoever freezes is the system
user that runs the command, whatever its environment says.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from tidemill.cli.client.actors import actor_names
from tidemill.cli.client.http_calls import PoolRefused, moment
from tidemill.cli.client.identity import own_pool
from tidemill.cli.client.local_pool import connected, home_settings, load_configuration, operator_name, own_urls
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import BY_ID, at
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
from tidemill.core.clock import Instant
from tidemill.core.currency import CREDIT, kept_currency
from tidemill.core.ids import Ids, short_id
from tidemill.core.ledger import AdjustmentState, LedgerAccount, PostingRefusal
from tidemill.core.money import micro_credits
from tidemill.core.refusals import Refusal
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.ledger import adjustments as store
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection

app = CommandGroup()

T = TypeVar("T")

LedgerEffect = Callable[[Connection, Ids, Instant], Awaitable[T | Refusal]]

_ROUTE = "/ledger/adjustments"
_COLUMNS = ("adjustment", "state", "amount", "currency", "from", "to", "by", "decided", "reason")

Which = Annotated[str, typer.Argument(metavar="ADJUSTMENT", help=f"The adjustment: {BY_ID}.")]
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
    sentence = f"Proposed as {short_id(proposed['id'])}. Nothing has moved yet: another operator runs"
    sentence = f"{sentence} `tidemill ledger approve {short_id(proposed['id'])}`. {_when(proposed['approvable_from'])}"
    report(sentence.rstrip(), proposed, as_json=as_json)


@app.command()
def adjustments(
    state: Annotated[AdjustmentState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the adjustments, newest first."""
    operator = pool_caller()
    listed = operator.listed(_ROUTE, {} if state is None else {"state": state.value}, limit)
    if as_json:
        print_json(listed)
        return
    ids = {adjustment[side] for adjustment in listed for side in ("debit", "credit")}
    sides = {side: account_text(operator.ask("GET", f"/ledger/accounts/{side}")) for side in ids}
    names = actor_names(operator, [one[by] for one in listed for by in ("proposed_by", "decided_by")])
    print_table(_COLUMNS, [_row(adjustment, sides, names) for adjustment in listed])


@app.command()
def approve(adjustment: Which, as_json: AsJson = False) -> None:
    """Approve what another operator has proposed, and post it."""
    operator = pool_caller()
    settled = operator.ask("POST", at(_ROUTE, adjustment, "approve"))
    moved, by = f"{settled['amount']} {settled['currency']}", settled["proposed_by"]
    sentence = f"Approved and posted: {moved}, proposed by {actor_names(operator, [by])[by]}."
    report(sentence, settled, as_json=as_json)


@app.command()
def reject(adjustment: Which, as_json: AsJson = False) -> None:
    """Reject an adjustment, or take your own back."""
    settled = pool_caller().ask("POST", at(_ROUTE, adjustment, "reject"))
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
    operator, described = pool_caller(), [side for side in sides if isinstance(side, LedgerAccount)]
    try:
        proposed: dict[str, Any] = operator.ask("POST", _ROUTE, body)
    except PoolRefused as refused:
        is_ours = operator.pool.url in own_pool().urls
        if refused.code != PostingRefusal.UNKNOWN_ACCOUNT.code or not described or not is_ours:
            raise
        _act(lambda c, _, now: ledger.open_accounts(c, described, now))
        proposed = operator.ask("POST", _ROUTE, body)
    return proposed


def _when(approvable_from: str | None) -> str:
    """What stands in the way of an approval now."""
    if approvable_from is None:
        return "There is no other operator yet: `tidemill admin roles ADDRESS operator --reason …` makes one."
    if datetime.fromisoformat(approvable_from) <= datetime.now(UTC):
        return ""
    return f"The other operator is new: their word counts from {moment(approvable_from)} UTC."


def _set_frozen(account: str, reason: str, *, frozen: bool, as_json: bool) -> None:
    money = home_settings().money
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
        async with connected(own_urls(load_configuration().settings).program) as connection:
            now = await read_clock(connection)
            async with connection.transaction():
                result = await effect(connection, Ids(secrets.randbits), now)
                if isinstance(result, Refusal):
                    raise CommandRefused(result.sentence)
            await events.wake(connection)
            return result

    return asyncio.run(act())


def _row(adjustment: Mapping[str, Any], sides: Mapping[str, str], names: Mapping[str | None, str]) -> tuple[str, ...]:
    moved = (adjustment["amount"], adjustment["currency"], sides[adjustment["debit"]], sides[adjustment["credit"]])
    by = (names[adjustment["proposed_by"]], names[adjustment["decided_by"]], adjustment["reason"])
    return short_id(adjustment["id"]), adjustment["state"], *moved, *by
