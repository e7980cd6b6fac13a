"""Join tokens of one's own account: make, list, revoke."""

import secrets
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, Control, ControlPart
from tidemill.control.http.guard import GuardedRoute, limited
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import JoinTokenId
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.roles import Caller, Role
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.join_tokens import (
    LIFETIME_MAX_S,
    NAME_MAX,
    SECRET_BYTES,
    USES_MAX,
    JoinToken,
    read_token,
    refused_join,
    refused_token,
    sha256,
    write_token,
)
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import LABEL_MAX, LABELS_MAX, RuleBook, RuleOrigin
from tidemill.core.signatures import fingerprint
from tidemill.store.accounts import accounts
from tidemill.store.nodes import join_tokens
from tidemill.store.operations.pool_secrets import load_identity
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/nodes/join-tokens", tags=["nodes"], route_class=GuardedRoute)


class NewJoinToken(BaseModel):
    name: str = Field(max_length=NAME_MAX, description="What you will know it by.", examples=["rack 7"])
    uses: int = Field(1, ge=1, le=USES_MAX, description="How many machines may join with it.")
    lifetime_s: int = Field(3600, ge=1, le=LIFETIME_MAX_S, description="For how many seconds it is good.")
    labels: list[Annotated[str, Field(max_length=LABEL_MAX)]] = Field(
        [], max_length=LABELS_MAX, description="Labels of the machines that join with it, such as `rack=7`."
    )
    house: bool = Field(False, description="For the pool's own machines; only operators make such tokens.")


class JoinTokenView(View):
    id: UUID
    name: str
    house: bool
    labels: list[str]
    uses_max: int
    uses: int
    made_at: Timestamp
    expires_at: Timestamp


class NewJoinTokenView(BaseModel):
    token: str = Field(description="Shown this once. `tidemill agent join` reads it from its input.")
    about: JoinTokenView


class JoinTokenList(BaseModel):
    items: list[JoinTokenView]


@router.get("", responses=documented())
async def list_tokens(control: ControlPart, caller: CallerPart) -> JoinTokenList:
    """The join tokens that are open: more machines can join with them."""
    assert caller.account_id
    async with control.route_database.connection() as connection:
        tokens = await join_tokens.listed(connection, caller.account_id, control.clock.now())
    return JoinTokenList(items=[JoinTokenView.model_validate(token) for token in tokens])


@router.post("", status_code=201, responses=documented(400, 403, 409, 413, 422))
async def make(body: NewJoinToken, control: ControlPart, caller: CallerPart) -> NewJoinTokenView:
    """Make a join token. It is shown in this answer and never again."""
    whose, now = caller.account_bucket, control.clock.now()
    await limited(control, control.limits.credentials, whose, refusal=RequestRefusal.TOO_MANY_CREDENTIALS)
    token_id = control.ids.new(now)
    text = write_token(token_id, secrets.token_bytes(SECRET_BYTES), await _fingerprint(control, now))
    draft = _draft(body, caller, token_id, sha256(unless_refused(read_token(text)).secret_part), now)
    async with control.route_database.transaction() as transaction:
        await _check_owner(transaction, draft)
        token = await join_tokens.make(transaction, draft, by=caller.name, ids=control.ids, now=now)
        return NewJoinTokenView(token=text, about=JoinTokenView.model_validate(unless_refused(token)))


@router.delete("/{token_id}", status_code=204, responses=documented(404, 422))
async def revoke(token_id: JoinTokenId, control: ControlPart, caller: CallerPart) -> None:
    """Revoke a join token, at once. Machines that joined with it stay."""
    assert caller.account_id
    async with control.route_database.transaction() as transaction:
        refusal = await join_tokens.revoke(
            transaction, caller.account_id, token_id, by=caller.name, ids=control.ids, now=control.clock.now()
        )
        if refusal is not None:
            raise RouteRefused(refusal)


def _draft(body: NewJoinToken, caller: Caller, token_id: UUID, secret_sha256: bytes, now: Instant) -> JoinToken:
    """The token to make. A caller with one factor cannot make a house token, which takes two."""
    assert caller.account_id
    roles = caller.roles if caller.is_operator else caller.roles - {Role.OPERATOR}
    unless_refused(refused_join(roles, house=body.house))
    unless_refused(refused_token(name=body.name, uses=body.uses, lifetime_s=body.lifetime_s))
    labels = {"labels": body.labels} if body.labels else {}
    unless_refused(rule_book.change(RuleBook(), labels, by=caller.name, place=RuleOrigin.POOL, now=now))
    return JoinToken(
        id=token_id,
        account_id=caller.account_id,
        name=body.name,
        sha256=secret_sha256,
        house=body.house,
        labels=body.labels,
        uses_max=body.uses,
        uses=0,
        made_at=now,
        expires_at=Instant(now + body.lifetime_s * SECOND),
    )


async def _check_owner(transaction: Connection, draft: JoinToken) -> None:
    """Check again: the account may have been blocked or deleted, or lost its role, since the guard let it in."""
    account = await accounts.locked(transaction, draft.account_id)
    if account is None:
        raise RouteRefused(SessionRefusal.SESSION_OVER)
    if account.blocked_reason is not None:
        raise RouteRefused(LoginRefusal.ACCOUNT_BLOCKED)
    unless_refused(refused_join(account.roles, house=draft.house))


async def _fingerprint(control: Control, now: Instant) -> str:
    identity = await load_identity(control.route_database, control.keyring, control.ids, now, secrets.token_bytes)
    return fingerprint(identity.key)
