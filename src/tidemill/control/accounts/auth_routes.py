"""Authentication: setting the pool up, registering, confirming, logging in and out, resetting a password."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, SecretStr

from tidemill.control.accounts import login as logging_in
from tidemill.control.accounts import registration
from tidemill.control.accounts.login import LoginCredentials, OpenSession, evenly
from tidemill.control.context import CallerPart, Control, ControlPart, DevicePart
from tidemill.control.http.guard import REFRESH_COOKIE, GuardedRoute, give_cookies, limited_by_address, take_cookies
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.views import API, AddressText, parsed_address
from tidemill.core.accounts.account import AccountStateRefusal, Language
from tidemill.core.accounts.passwords import PASSWORD_MAX, checked_password
from tidemill.core.accounts.roles import Role
from tidemill.core.accounts.sessions import SessionEnd, SessionRefusal
from tidemill.core.clock import SECOND, Instant, as_datetime
from tidemill.store.accounts import sessions
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.operations import pool

router = APIRouter(prefix=f"{API}/auth", tags=["auth"], route_class=GuardedRoute)
set_up_router = APIRouter(tags=["auth"], route_class=GuardedRoute)

Password = Annotated[SecretStr, Field(max_length=PASSWORD_MAX, description="At least 8 characters.")]
Code = Annotated[str, Field(max_length=64, description="A code of the authenticator, or a recovery code.")]
MailedText = Annotated[str | None, Field(max_length=200)]


class SetUp(BaseModel):
    token: str = Field(max_length=200, description="What follows the # in the set-up link.")
    address: AddressText
    password: Password
    language: Language = Language.ENGLISH


class Registration(BaseModel):
    address: AddressText
    password: Password
    roles: list[Literal["customer", "provider"]] = Field(["customer"], min_length=1, max_length=2)
    language: Language = Language.ENGLISH


class MailProofBody(BaseModel):
    """What came by mail: the link's token, or the address and the code."""

    link: MailedText = Field(None, description="What follows the # in the link.")
    address: AddressText | None = None
    code: MailedText = Field(None, description="The code in the letter, together with `address`.")


class AddressConfirmation(MailProofBody):
    password: SecretStr | None = Field(
        None, max_length=PASSWORD_MAX, description="For a registration: the password that was chosen then."
    )


class PasswordReset(MailProofBody):
    password: Password


class ForgottenPassword(BaseModel):
    address: AddressText
    language: Language = Field(Language.ENGLISH, description="For a letter to an address without an account.")


class Login(BaseModel):
    address: AddressText
    password: SecretStr = Field(max_length=PASSWORD_MAX)
    code: Code | None = None
    remember: bool = Field(False, description="Keep the session while it is not used.")
    cookies: bool = Field(False, description="For browsers: put the tokens in cookies that scripts cannot read.")


class Reauthentication(BaseModel):
    password: SecretStr = Field(max_length=PASSWORD_MAX)
    code: Code | None = None


class Refresh(BaseModel):
    refresh_token: str | None = Field(None, max_length=200, description="Browsers send it as a cookie instead.")


class SessionTokensView(BaseModel):
    """Tokens are left out where cookies hold them."""

    session_id: UUID
    access_token: str | None
    refresh_token: str | None
    access_expires_at: datetime
    session_expires_at: datetime


class AcceptanceView(BaseModel):
    detail: str = "If there is something to tell, a letter is on its way."


class CredentialCheckView(BaseModel):
    good: bool
    roles: list[Role]


class NewAccountView(BaseModel):
    account_id: UUID


@set_up_router.post(f"{API}/setup", status_code=201, responses=documented(409, 413, 422))
async def set_up(body: SetUp, control: ControlPart, device: DevicePart) -> NewAccountView:
    """Make the first operator's account, with the link that `tidemill up` prints. Then log in, add a second factor."""
    await limited_by_address(control, control.limits.door, device)
    address = parsed_address(body.address)
    checked = unless_refused(checked_password(body.password.get_secret_value(), address))
    newcomer = NewAccount(address, await control.passwords.hash(checked), frozenset({Role.OPERATOR}), body.language)
    async with control.route_database.transaction() as transaction:
        account_id = await pool.set_up(transaction, body.token, newcomer, control.ids, control.clock.now())
        return NewAccountView(account_id=unless_refused(account_id))


@router.post("/register", status_code=202, responses=documented(403, 413, 422))
async def register(body: Registration, control: ControlPart, device: DevicePart) -> AcceptanceView:
    """Ask for an account. A letter to the address says how to confirm it, or that there is one already."""
    address = parsed_address(body.address)
    roles = frozenset(map(Role, body.roles))
    if not roles <= control.settings.accounts.roles_by_request.roles:
        raise RouteRefused(AccountStateRefusal.ROLE_NOT_FREE)
    async with evenly():
        await registration.register(control, address, body.password.get_secret_value(), roles, body.language, device)
    return AcceptanceView()


@router.post("/confirm", responses=documented(409, 413, 422))
async def confirm(proof: AddressConfirmation, control: ControlPart, device: DevicePart) -> NewAccountView:
    """Prove an address by the link or the code in a letter. Each is good once, for a day."""
    async with evenly():
        password = proof.password.get_secret_value() if proof.password else None
        return NewAccountView(account_id=await registration.confirm(control, _proof(proof), password, device))


@router.post("/login", responses=documented(413, 422))
async def login(
    body: Login, request: Request, response: Response, control: ControlPart, device: DevicePart
) -> SessionTokensView:
    """Begin a session. With a second factor, send its `code` too."""
    credentials = LoginCredentials(parsed_address(body.address), body.password.get_secret_value(), body.code)
    async with evenly():
        opened = await logging_in.log_in(control, credentials, device, remember=body.remember)
    return _tokens(control, request, response, opened, cookies=body.cookies)


@router.post("/refresh", responses=documented(413, 422))
async def refresh(
    body: Refresh, request: Request, response: Response, control: ControlPart, device: DevicePart
) -> SessionTokensView:
    """Go on with a session. Each refresh token is good once; one that comes back ends its session."""
    cookie = request.cookies.get(REFRESH_COOKIE)
    token = body.refresh_token or cookie
    if not token:
        raise RouteRefused(SessionRefusal.TOKEN_UNKNOWN)
    opened = await logging_in.refresh_session(control, token, device)
    return _tokens(control, request, response, opened, cookies=body.refresh_token is None)


@router.post("/forgot", status_code=202, responses=documented(413, 422))
async def forgot(body: ForgottenPassword, control: ControlPart, device: DevicePart) -> AcceptanceView:
    """Ask for a letter that lets one set another password."""
    address = parsed_address(body.address)
    async with evenly():
        await registration.forgot(control, address, body.language, device)
    return AcceptanceView()


@router.post("/reset", status_code=204, responses=documented(413, 422))
async def reset(body: PasswordReset, control: ControlPart, device: DevicePart) -> None:
    """Set another password, with the link or the code in a letter. Every session ends; the second factor stays."""
    async with evenly():
        await registration.reset(control, _proof(body), body.password.get_secret_value(), device)


@router.get("/check", responses=documented())
async def check(caller: CallerPart) -> CredentialCheckView:
    """Is this token or key good, and what does it act as? Answered from memory most of the time."""
    return CredentialCheckView(good=True, roles=sorted(caller.roles))


@router.post("/logout", status_code=204, responses=documented())
async def logout(response: Response, control: ControlPart, caller: CallerPart) -> None:
    """End this session."""
    assert caller.account_id
    async with control.route_database.transaction() as transaction:
        await sessions.end(
            transaction,
            caller.account_id,
            SessionEnd.LOGGED_OUT,
            only=caller.session_id,
            ids=control.ids,
            now=control.clock.now(),
        )
    take_cookies(response)


@router.post("/reauthenticate", status_code=204, responses=documented(413, 422))
async def reauthenticate(body: Reauthentication, control: ControlPart, caller: CallerPart, device: DevicePart) -> None:
    """Type the password again, for what needs a fresh one."""
    async with evenly():
        await logging_in.reauthenticate(control, caller, device, body.password.get_secret_value(), body.code)


def _proof(proof: MailProofBody) -> registration.MailProof:
    address = parsed_address(proof.address) if proof.address is not None else None
    return registration.MailProof(proof.link, address, proof.code)


def _tokens(
    control: Control, request: Request, response: Response, opened: OpenSession, *, cookies: bool
) -> SessionTokensView:
    now, session = control.clock.now(), opened.session
    access = control.tokens.sign(session, now)
    response.headers["Cache-Control"] = "no-store"
    if cookies:
        secure = request.url.scheme == "https"
        give_cookies(
            response, control, access=access, refresh=opened.refresh_token, remember=session.remember, secure=secure
        )
    return SessionTokensView(
        session_id=session.id,
        access_token=None if cookies else access,
        refresh_token=None if cookies else opened.refresh_token,
        access_expires_at=as_datetime(Instant(now + control.tokens.lifetime_s * SECOND)),
        session_expires_at=as_datetime(session.expires_at),
    )
