"""The second factor: begin with a QR code, confirm with a first code, keep ten recovery codes, remove it again."""

import io
import secrets

import segno
from fastapi import APIRouter
from pydantic import BaseModel, Field

from tidemill.control.accounts.account_routes import own_account
from tidemill.control.accounts.auth_routes import Code
from tidemill.control.accounts.caller_account import locked_caller_account
from tidemill.control.accounts.login import show_code
from tidemill.control.context import CallerPart, Control, ControlPart, DevicePart
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented
from tidemill.control.http.views import API
from tidemill.control.notices.letters import tell
from tidemill.core.accounts.account import Account
from tidemill.core.accounts.roles import Caller, Role
from tidemill.core.accounts.second_factor import (
    RECOVERY_BYTES,
    RECOVERY_CODES,
    SECRET_BYTES,
    SecondFactorRefusal,
    provisioning_uri,
    recovery_code,
    secret_text,
)
from tidemill.core.accounts.sessions import SessionEnd
from tidemill.core.clock import Instant
from tidemill.core.notices.mail import LetterKind
from tidemill.store.accounts import api_keys, second_factors, sessions
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/account/second-factor", tags=["account"], route_class=GuardedRoute)


class SecondFactorSetUp(BaseModel):
    secret: str = Field(description="For authenticators without a camera.")
    uri: str = Field(description="What the QR code says.")
    qr_svg: str = Field(description="The QR code as a picture.")


class FirstCode(BaseModel):
    code: Code


class RecoveryCodesView(BaseModel):
    recovery_codes: list[str] = Field(description="Shown this once: each lets you in once without your device.")


@router.post("", responses=documented(409))
async def begin(control: ControlPart, caller: CallerPart) -> SecondFactorSetUp:
    """Get a secret for an authenticator. It counts once a code of it has been shown."""
    account, secret = await own_account(control, caller), secrets.token_bytes(SECRET_BYTES)
    async with control.route_database.connection() as connection:
        _raise_if(await second_factors.begin(connection, account.id, secret, control.keyring))
    uri = provisioning_uri(secret, account=account.address, issuer=control.settings.mail.pool_name)
    return SecondFactorSetUp(secret=secret_text(secret), uri=uri, qr_svg=_qr(uri))


@router.post("/confirm", responses=documented(409, 413, 422))
async def confirm(body: FirstCode, control: ControlPart, caller: CallerPart) -> RecoveryCodesView:
    """Switch the second factor on with a first code. The recovery codes are shown this once; other sessions end."""
    codes, now = _new_codes(), control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        _raise_if(
            await second_factors.switch_on(
                transaction, account.id, body.code, codes, keyring=control.keyring, ids=control.ids, now=now
            )
        )
        await _end_other_sessions(control, transaction, account, caller, now)
    return RecoveryCodesView(recovery_codes=codes)


@router.post("/recovery-codes", responses=documented(409))
async def renew_codes(control: ControlPart, caller: CallerPart) -> RecoveryCodesView:
    """Get ten new recovery codes. The old ones are no good any more."""
    codes, now = _new_codes(), control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        _raise_if(await second_factors.renew_codes(transaction, account.id, codes, control.ids, now))
    return RecoveryCodesView(recovery_codes=codes)


@router.post("/remove", status_code=204, responses=documented(409, 413, 422))
async def remove(body: FirstCode, control: ControlPart, caller: CallerPart, device: DevicePart) -> None:
    """Remove the second factor, with one more code of it. Every session ends, and so do an operator's keys."""
    account = await own_account(control, caller)
    if not account.second_factor_on:
        raise RouteRefused(SecondFactorRefusal.SECOND_FACTOR_OFF)
    await show_code(control, account, device, body.code)
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        await take_away(control, transaction, account, caller.name, control.clock.now())


async def take_away(control: Control, transaction: Connection, account: Account, by: str, now: Instant) -> None:
    """Remove an account's second factor and write to its owner. End what relied on it: sessions, operator's keys."""
    _raise_if(await second_factors.remove(transaction, account.id, by=by, ids=control.ids, now=now))
    await sessions.end(transaction, account.id, SessionEnd.SECOND_FACTOR_CHANGED, ids=control.ids, now=now)
    kept = sorted(account.roles - {Role.OPERATOR})
    await api_keys.revoke_lost_roles(transaction, account.id, kept, control.ids, now)
    await tell(control, transaction, account, LetterKind.SECOND_FACTOR_OFF, now, at=now, link="/reset")


async def _end_other_sessions(
    control: Control, transaction: Connection, account: Account, caller: Caller, now: Instant
) -> None:
    """End all sessions but the caller's, which has just shown its second factor."""
    assert caller.session_id
    why = SessionEnd.SECOND_FACTOR_CHANGED
    await sessions.end(transaction, account.id, why, but=caller.session_id, ids=control.ids, now=now)
    await sessions.freshen(transaction, caller.session_id, second_factor=True, now=now)
    await tell(control, transaction, account, LetterKind.SECOND_FACTOR_ON, now, at=now)


def _new_codes() -> list[str]:
    return [recovery_code(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]


def _qr(uri: str) -> str:
    picture = io.BytesIO()
    segno.make_qr(uri, error="m").save(picture, kind="svg", scale=5, border=4, xmldecl=False, light="#fff")
    return picture.getvalue().decode()


def _raise_if(refusal: SecondFactorRefusal | None) -> None:
    if refusal is not None:
        raise RouteRefused(refusal)
