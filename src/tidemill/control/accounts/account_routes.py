"""One's own account: its roles, its password and address, its sessions and the tries to log in."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from tidemill.control.accounts import registration
from tidemill.control.accounts.auth_routes import AcceptanceView, Password
from tidemill.control.accounts.login import evenly
from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute, take_cookies
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import SessionId
from tidemill.control.http.views import API, IN_ORDER, AddressText, Timestamp, View, parsed_address
from tidemill.control.notices.letters import tell
from tidemill.core.accounts.account import Account, Language
from tidemill.core.accounts.kyc import Kyc
from tidemill.core.accounts.roles import Caller, Role
from tidemill.core.accounts.sessions import Session, SessionEnd, SessionRefusal
from tidemill.core.notices.mail import LetterKind
from tidemill.store.accounts import accounts, logins, sessions

router = APIRouter(prefix=f"{API}/account", tags=["account"], route_class=GuardedRoute)


class AccountView(View):
    id: UUID
    address: str
    roles: Annotated[list[Role], IN_ORDER]
    language: Language
    kyc: Kyc
    kyc_reason: str
    second_factor_on: bool
    created_at: Timestamp

    @classmethod
    def of(cls, account: Account) -> "AccountView":
        return cls.model_validate(account)


class OwnAccountView(BaseModel):
    account: AccountView
    session_id: UUID | None
    acting_as: list[Role] = Field(description="The roles this session or key acts in; an operator needs two factors.")
    roles_by_request: Annotated[list[Role], IN_ORDER] = Field(description="The roles that people take on themselves.")


class NewPassword(BaseModel):
    password: Password


class NewAddress(BaseModel):
    address: AddressText


class NewLanguage(BaseModel):
    language: Language


class RoleChoice(BaseModel):
    roles: list[Literal["customer", "provider"]] = Field(max_length=2)


class SessionView(BaseModel):
    id: UUID
    began_at: Timestamp
    seen_at: Timestamp
    expires_at: Timestamp
    address: str
    user_agent: str
    second_factor: bool
    current: bool = Field(description="Whether it is the one that asks.")


class SessionList(BaseModel):
    items: list[SessionView]


class LoginTryView(View):
    id: UUID
    at: Timestamp
    address: str
    user_agent: str
    result: logins.LoginResult


class LoginTryPage(BaseModel):
    items: list[LoginTryView]
    has_more: bool
    after: UUID | None


class EndedSessionsView(BaseModel):
    ended: int


@router.get("", responses=documented())
async def show(control: ControlPart, caller: CallerPart) -> OwnAccountView:
    """Who am I?"""
    account = await own_account(control, caller)
    acting = [role for role in sorted(caller.roles) if role is not Role.OPERATOR or caller.is_operator]
    free = sorted(control.settings.accounts.roles_by_request.roles)
    view = AccountView.of(account)
    return OwnAccountView(account=view, session_id=caller.session_id, acting_as=acting, roles_by_request=free)


@router.post("/password", status_code=204, responses=documented(413, 422))
async def change_password(body: NewPassword, control: ControlPart, caller: CallerPart) -> None:
    """Set another password. Every other session ends."""
    await registration.change_password(control, caller, body.password.get_secret_value())


@router.post("/address", status_code=202, responses=documented(413, 422))
async def change_address(body: NewAddress, control: ControlPart, caller: CallerPart) -> AcceptanceView:
    """Move to another e-mail address. It counts once the letter to it is confirmed; the old one is told."""
    address = parsed_address(body.address)
    async with evenly():
        await registration.change_address(control, caller, address)
    return AcceptanceView()


@router.post("/language", status_code=204, responses=documented(413, 422))
async def change_language(body: NewLanguage, control: ControlPart, caller: CallerPart) -> None:
    """Choose the language of letters."""
    assert caller.account_id
    async with control.route_database.connection() as connection:
        await accounts.set_language(connection, caller.account_id, body.language)


@router.post("/roles", responses=documented(413, 422))
async def choose_roles(body: RoleChoice, control: ControlPart, caller: CallerPart) -> AccountView:
    """Choose whether to buy, to provide, or both, where the pool allows it. Roles given by an operator stay."""
    assert caller.account_id
    roles, allowed = frozenset(map(Role, body.roles)), control.settings.accounts.roles_by_request
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        changed = await accounts.take_on_roles(transaction, caller.account_id, roles, allowed, control.ids, now)
        return AccountView.of(unless_refused(changed))


@router.post("/kyc", responses=documented(409))
async def submit_kyc(control: ControlPart, caller: CallerPart) -> AccountView:
    """Ask an operator to verify who you are."""
    assert caller.account_id
    async with control.route_database.transaction() as transaction:
        changed = await accounts.submit_kyc(transaction, caller.account_id, control.ids, control.clock.now())
        return AccountView.of(unless_refused(changed))


@router.post("/delete", status_code=204, responses=documented(409))
async def delete(response: Response, control: ControlPart, caller: CallerPart) -> None:
    """Delete the account. What the books say of it stays, under an id that nobody can trace to you."""
    assert caller.account_id
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        gone = unless_refused(await accounts.delete(transaction, caller.account_id, control.ids, now))
        await tell(control, transaction, gone, LetterKind.ACCOUNT_DELETED, now, at=now)
    take_cookies(response)


@router.get("/logins", responses=documented(422))
async def list_logins(
    control: ControlPart, caller: CallerPart, most: PageLimit, after: UUID | None = None
) -> LoginTryPage:
    """The tries to log in to this account, newest first."""
    assert caller.account_id
    async with control.route_database.connection() as connection:
        attempts = await logins.listed(connection, caller.account_id, after, most + 1)
    items = [LoginTryView.model_validate(attempt) for attempt in attempts[:most]]
    return LoginTryPage(items=items, has_more=len(attempts) > most, after=items[-1].id if items else None)


@router.get("/sessions", responses=documented())
async def list_sessions(control: ControlPart, caller: CallerPart) -> SessionList:
    """The sessions of this account."""
    assert caller.account_id
    async with control.route_database.connection() as connection:
        listed = await sessions.listed(connection, caller.account_id, control.session_rules, control.clock.now())
    return SessionList(items=[_session_view(session, caller) for session in listed])


@router.post("/sessions/end-others", responses=documented())
async def end_other_sessions(control: ControlPart, caller: CallerPart) -> EndedSessionsView:
    """End every session but this one."""
    return EndedSessionsView(ended=await _end(control, caller, but=caller.session_id))


@router.delete("/sessions/{session_id}", status_code=204, responses=documented(404, 422))
async def end_session(session_id: SessionId, control: ControlPart, caller: CallerPart) -> None:
    """End a session."""
    if not await _end(control, caller, only=session_id):
        raise RouteRefused(SessionRefusal.UNKNOWN_SESSION)


async def own_account(control: Control, caller: Caller) -> Account:
    assert caller.account_id
    async with control.route_database.connection() as connection:
        account = await accounts.get(connection, caller.account_id)
    if account is None:
        raise RouteRefused(SessionRefusal.SESSION_OVER)
    return account


async def _end(control: Control, caller: Caller, *, only: UUID | None = None, but: UUID | None = None) -> int:
    assert caller.account_id
    async with control.route_database.transaction() as transaction:
        ended_sessions = await sessions.end(
            transaction,
            caller.account_id,
            SessionEnd.ENDED_BY_OWNER,
            only=only,
            but=but,
            ids=control.ids,
            now=control.clock.now(),
        )
    return len(ended_sessions)


def _session_view(session: Session, caller: Caller) -> SessionView:
    return SessionView(
        **{name: getattr(session, name) for name in ("id", "began_at", "seen_at", "expires_at", "second_factor")},
        address=session.address,
        user_agent=session.user_agent,
        current=session.id == caller.session_id,
    )
