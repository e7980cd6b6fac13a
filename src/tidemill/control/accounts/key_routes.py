"""API keys of one's own account: make, list, rotate, revoke."""

import secrets
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from tidemill.control.accounts.caller_account import locked_caller_account
from tidemill.control.context import CallerPart, Control, ControlPart
from tidemill.control.http.exact_numbers import ExactRoute
from tidemill.control.http.guard import limited
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import KeyId
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.http.views import API, IN_ORDER, Credits, Timestamp, View
from tidemill.control.notices.letters import tell
from tidemill.core.accounts.account import Account
from tidemill.core.accounts.keys import (
    NAME_MAX,
    NETWORKS_MAX,
    SECRET_BYTES,
    ApiKey,
    parse_networks,
    refused_key,
    write_key,
)
from tidemill.core.accounts.roles import Caller, Role, Scope
from tidemill.core.clock import SECOND, Instant, as_instant
from tidemill.core.money import micro_credits
from tidemill.core.notices.mail import LetterKind
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import api_keys
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/account/keys", tags=["keys"], route_class=ExactRoute)


def _within_the_calendar(at: datetime) -> datetime:
    """It ends with the year 9999, wherever one is."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("the calendar ends with the year 9999") from None


class NewKey(BaseModel):
    name: str = Field(max_length=NAME_MAX, examples=["render farm"])
    role: Role = Field(Role.CUSTOMER, description="The role the key acts in; one that the account has.")
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    networks: list[Annotated[str, Field(max_length=64)]] = Field(
        [], max_length=NETWORKS_MAX, description="Where it may be used from; empty means anywhere."
    )
    expires_at: Annotated[AwareDatetime, AfterValidator(_within_the_calendar)] | None = None
    spending_cap: str | None = Field(
        None, max_length=40, description="The most credits that may ever be spent with it.", examples=["250"]
    )


class KeyView(View):
    id: UUID
    name: str
    role: Role
    scopes: Annotated[list[Scope], IN_ORDER]
    prefix: str = Field(description="How the key begins; the rest is not kept.")
    networks: list[str]
    spending_cap: Credits | None = Field(validation_alias="spending_cap_uc")
    spent: Credits = Field(validation_alias="spent_uc")
    made_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None
    revoked_at: Timestamp | None = Field(description="In the future: until when a rotated key still works.")


class NewKeyView(BaseModel):
    key: str = Field(description="Shown this once. Send it as `Authorization: Bearer …`.")
    about: KeyView


class KeyList(BaseModel):
    items: list[KeyView]


@router.get("", responses=documented())
async def list_keys(control: ControlPart, caller: CallerPart) -> KeyList:
    """The API keys that still work."""
    assert caller.account_id
    async with control.route_database.connection() as connection:
        keys = await api_keys.listed(connection, caller.account_id, control.clock.now())
    return KeyList(items=[KeyView.model_validate(key) for key in keys])


@router.post("", status_code=201, responses=documented(409, 413, 422))
async def make(body: NewKey, control: ControlPart, caller: CallerPart) -> NewKeyView:
    """Make an API key. It is shown in this answer and never again."""
    await _count(control, caller)
    secret, now = write_key(secrets.token_bytes(SECRET_BYTES)), control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        draft = _draft(body, account, caller, control.ids.new(now), now)
        key = await api_keys.make(transaction, draft, secret, control.ids, now)
        return await _announce(control, transaction, account, key, secret, now)


@router.post("/{key_id}/rotate", status_code=201, responses=documented(404, 409, 422))
async def rotate(key_id: KeyId, control: ControlPart, caller: CallerPart) -> NewKeyView:
    """Make a key of the same kind in its place. The old one works on for a while, so that nothing stands still."""
    await _count(control, caller)
    secret, now = write_key(secrets.token_bytes(SECRET_BYTES)), control.clock.now()
    until = Instant(now + int(control.settings.login.key_overlap_s * SECOND))
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        key = await api_keys.rotate(transaction, account.id, key_id, secret, old_until=until, ids=control.ids, now=now)
        return await _announce(control, transaction, account, key, secret, now)


@router.delete("/{key_id}", status_code=204, responses=documented(404, 422))
async def revoke(key_id: KeyId, control: ControlPart, caller: CallerPart) -> None:
    """Revoke a key, at once."""
    assert caller.account_id
    async with control.route_database.transaction() as transaction:
        refusal = await api_keys.revoke(transaction, caller.account_id, key_id, control.ids, control.clock.now())
        if refusal is not None:
            raise RouteRefused(refusal)


async def _count(control: Control, caller: Caller) -> None:
    """Each key is written into the audit trail, and causes a letter: so many an hour, and no more."""
    whose, refusal = caller.account_bucket, RequestRefusal.TOO_MANY_CREDENTIALS
    await limited(control, control.limits.credentials, whose, refusal=refusal)


def _draft(body: NewKey, account: Account, caller: Caller, key_id: UUID, now: Instant) -> ApiKey:
    """The key to make. A caller with one factor cannot make a key that acts as operator, which takes two."""
    roles = account.roles if caller.is_operator else account.roles - {Role.OPERATOR}
    scopes, expires_at = frozenset(body.scopes), as_instant(body.expires_at) if body.expires_at else None
    unless_refused(
        refused_key(name=body.name, role=body.role, scopes=scopes, expires_at=expires_at, held=roles, now=now)
    )
    networks = unless_refused(parse_networks(body.networks))
    cap_uc = None if body.spending_cap is None else unless_refused(micro_credits(body.spending_cap))
    return ApiKey(
        id=key_id,
        account_id=account.id,
        name=body.name,
        role=body.role,
        scopes=scopes,
        made_at=now,
        first_id=key_id,
        networks=networks,
        spending_cap_uc=cap_uc,
        expires_at=expires_at,
    )


async def _announce(
    control: Control, transaction: Connection, account: Account, key: ApiKey | Refusal, secret: str, now: Instant
) -> NewKeyView:
    """The view of a new key. The owner also gets a letter: somebody else may be using the session."""
    key = unless_refused(key)
    letter_values = {"name": key.name, "prefix": key.prefix}
    await tell(control, transaction, account, LetterKind.KEY_MADE, now, **letter_values, at=now, link="/login")
    return NewKeyView(key=secret, about=KeyView.model_validate(key))
