"""Accounts as operators see them: list, block, verify, give roles, take a lost second factor away."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from tidemill.control.accounts.account_routes import AccountView
from tidemill.control.accounts.second_factor_routes import take_away
from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import documented, unless_refused
from tidemill.control.http.references import AccountId
from tidemill.control.http.views import API, AddressText, OperatorReason, Timestamp, parsed_address
from tidemill.control.notices.letters import tell
from tidemill.core.accounts.account import Account, AccountStateRefusal
from tidemill.core.accounts.kyc import Kyc
from tidemill.core.accounts.roles import Role, name_of_account
from tidemill.core.clock import as_datetime
from tidemill.core.notices.mail import LetterKind
from tidemill.core.reasons import checked_reason
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import accounts, operator_words
from tidemill.store.accounts.accounts import AccountFilter

router = APIRouter(prefix=f"{API}/admin/accounts", tags=["admin"], route_class=GuardedRoute)


class AdminAccountView(AccountView):
    blocked_reason: str | None


class GivenRolesView(AdminAccountView):
    decides_with_others_from: Timestamp | None = Field(
        None, description="From when an operator's word counts where two operators have to agree."
    )


class AdminAccountPage(BaseModel):
    items: list[AdminAccountView]
    has_more: bool
    after: UUID | None


class RolesDecision(OperatorReason):
    roles: list[Role] = Field(min_length=1, max_length=len(Role))


class KycDecision(OperatorReason):
    state: Literal["verified", "rejected"]


async def _filter(
    address: Annotated[AddressText | None, Query()] = None,
    role: Role | None = None,
    kyc: Kyc | None = None,
    blocked: bool | None = None,
) -> AccountFilter:
    return AccountFilter(None if address is None else parsed_address(address), role, kyc, blocked)


@router.get("", responses=documented(422))
async def list_accounts(
    control: ControlPart,
    most: PageLimit,
    filters: Annotated[AccountFilter, Depends(_filter)],
    after: UUID | None = None,
) -> AdminAccountPage:
    """The accounts of the pool, newest first."""
    async with control.route_database.connection() as connection:
        page = await accounts.listed(connection, filters, after, most + 1)
    items = [AdminAccountView.model_validate(account) for account in page[:most]]
    return AdminAccountPage(items=items, has_more=len(page) > most, after=items[-1].id if items else None)


@router.get("/{account_id}", responses=documented(404, 422))
async def show(account_id: AccountId, control: ControlPart) -> AdminAccountView:
    """One account."""
    async with control.route_database.connection() as connection:
        account = await accounts.get(connection, account_id)
    return _view(account or AccountStateRefusal.UNKNOWN_PERSON)


@router.post("/{account_id}/block", responses=documented(404, 409, 413, 422))
async def block(
    account_id: AccountId, why: OperatorReason, control: ControlPart, caller: CallerPart
) -> AdminAccountView:
    """Block an account: its sessions end, its keys stop working, it gets no new work and starts none; work in hand is
    finished and paid."""
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await accounts.set_blocked(
            transaction, account_id, blocked=True, reason=why.reason, by=caller.name, ids=control.ids, now=now
        )
        view = _view(account)
        assert isinstance(account, Account)
        reason = account.blocked_reason or ""
        await tell(control, transaction, account, LetterKind.ACCOUNT_BLOCKED, now, reason=reason)
    return view


@router.post("/{account_id}/unblock", responses=documented(404, 409, 413, 422))
async def unblock(
    account_id: AccountId, why: OperatorReason, control: ControlPart, caller: CallerPart
) -> AdminAccountView:
    """Unblock an account."""
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await accounts.set_blocked(
            transaction, account_id, blocked=False, reason=why.reason, by=caller.name, ids=control.ids, now=now
        )
        view = _view(account)
        assert isinstance(account, Account)
        await tell(control, transaction, account, LetterKind.ACCOUNT_UNBLOCKED, now, link="/login")
    return view


@router.post("/{account_id}/roles", responses=documented(404, 409, 413, 422))
async def give_roles(
    account_id: AccountId, body: RolesDecision, control: ControlPart, caller: CallerPart
) -> GivenRolesView:
    """Decide which roles an account has."""
    roles, now = frozenset(body.roles), control.clock.now()
    async with control.route_database.transaction() as transaction:
        before = await accounts.get(transaction, account_id)
        account = await accounts.give_roles(
            transaction, account_id, roles, reason=body.reason, by=caller.name, ids=control.ids, now=now
        )
        view = GivenRolesView.model_validate(unless_refused(account))
        if before and Role.OPERATOR in roles - before.roles:
            await tell(control, transaction, before, LetterKind.OPERATOR_MADE, now, link="/account")
        word = await operator_words.read(transaction, name_of_account(account_id), control.settings.trail)
    counts_from = None if word.counts_from is None else as_datetime(word.counts_from)
    return view.model_copy(update={"decides_with_others_from": counts_from})


@router.post("/{account_id}/kyc", responses=documented(404, 409, 413, 422))
async def decide_kyc(
    account_id: AccountId, body: KycDecision, control: ControlPart, caller: CallerPart
) -> AdminAccountView:
    """Verify a provider, or reject them."""
    state, now = Kyc(body.state), control.clock.now()
    async with control.route_database.transaction() as transaction:
        return _view(
            await accounts.decide_kyc(
                transaction, account_id, state, reason=body.reason, by=caller.name, ids=control.ids, now=now
            )
        )


@router.post("/{account_id}/second-factor/remove", responses=documented(404, 409, 413, 422))
async def remove_second_factor(
    account_id: AccountId, why: OperatorReason, control: ControlPart, caller: CallerPart
) -> AdminAccountView:
    """For an owner who lost device and recovery codes, and has shown some other way who they are. They are told."""
    reason, now = unless_refused(checked_reason(why.reason)), control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await accounts.locked(transaction, account_id)
        view = _view(account or AccountStateRefusal.UNKNOWN_PERSON)
        assert account
        await take_away(control, transaction, account, f"{caller.name}: {reason}", now)
    return view.model_copy(update={"second_factor_on": False})


def _view(account: Account | Refusal) -> AdminAccountView:
    return AdminAccountView.model_validate(unless_refused(account))
