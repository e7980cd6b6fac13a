"""Ids in paths and filters, as people write them: each kind of object has one dependency, which gives a route the id.

A whole id costs no query. What else is written is looked up among the objects on which the route's row in the table of
permissions lets the caller act: another account's object is answered as if it did not exist.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query, Request

from tidemill.control.context import CallerPart, Control, ControlPart
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.core.accounts.permissions import whose_objects
from tidemill.core.accounts.roles import Caller
from tidemill.core.models.model import ModelRefusal, is_name
from tidemill.core.references import (
    NAMED,
    NEWEST_OF_ITS_NAME,
    GivenName,
    ObjectKind,
    Reference,
    ReferenceObjection,
    ReferenceRefusal,
    Referent,
    read_reference,
)
from tidemill.store import references

_EXAMPLES = ["0190a5c2-7e3b-7d21-9f4a-1c5d9fc8e31a", "9fc8e31a", "last", "last-1"]

FindId = Callable[..., Awaitable[UUID]]


def reference_words(kind: ObjectKind) -> str:
    """What is accepted where an id stands, for the reference."""
    name = "" if kind not in NAMED else " its address," if kind is ObjectKind.ACCOUNT else " its name,"
    newest = " (the newest of that name)" if kind in NEWEST_OF_ITS_NAME else ""
    return f"The whole id, its last 8 digits or more,{name}{newest} or `last`, `last-1` and so on, newest first."


def _in_path(kind: ObjectKind, parameter: str) -> FindId:
    async def find(
        request: Request,
        text: Annotated[str, Path(alias=parameter, description=reference_words(kind), examples=_EXAMPLES)],
        control: ControlPart,
        caller: CallerPart,
    ) -> UUID:
        return await _id(request, control, caller, kind, text)

    return find


def _in_filter(kind: ObjectKind, parameter: str) -> FindId:
    words = f"Of which account; for operators. {reference_words(kind)}"

    async def find(
        request: Request,
        control: ControlPart,
        caller: CallerPart,
        text: Annotated[str | None, Query(alias=parameter, description=words, examples=_EXAMPLES)] = None,
    ) -> UUID | None:
        # For others the filter means nothing, so it must not answer either whether such an account exists.
        return await _id(request, control, caller, kind, text) if text is not None and caller.is_operator else None

    return find  # type: ignore[return-value]


AccountId = Annotated[UUID, Depends(_in_path(ObjectKind.ACCOUNT, "account_id"))]
AdjustmentId = Annotated[UUID, Depends(_in_path(ObjectKind.ADJUSTMENT, "adjustment_id"))]
ArtefactId = Annotated[UUID, Depends(_in_path(ObjectKind.ARTEFACT, "artefact_id"))]
JobId = Annotated[UUID, Depends(_in_path(ObjectKind.JOB, "job_id"))]
JoinTokenId = Annotated[UUID, Depends(_in_path(ObjectKind.JOIN_TOKEN, "token_id"))]
KeyId = Annotated[UUID, Depends(_in_path(ObjectKind.KEY, "key_id"))]
LedgerAccountId = Annotated[UUID, Depends(_in_path(ObjectKind.LEDGER_ACCOUNT, "account_id"))]
NodeId = Annotated[UUID, Depends(_in_path(ObjectKind.NODE, "node_id"))]
ReviewedAttemptId = Annotated[UUID, Depends(_in_path(ObjectKind.REVIEW, "attempt_id"))]
SessionId = Annotated[UUID, Depends(_in_path(ObjectKind.SESSION, "session_id"))]
OwnerFilter = Annotated[UUID | None, Depends(_in_filter(ObjectKind.ACCOUNT, "owner"))]
LedgerAccountFilter = Annotated[UUID | None, Depends(_in_filter(ObjectKind.LEDGER_ACCOUNT, "account"))]


async def _model_name(
    request: Request,
    name: Annotated[str, Path(description=reference_words(ObjectKind.MODEL), examples=["tiny-instruct-1.0", "last"])],
    control: ControlPart,
    caller: CallerPart,
) -> str:
    reference = read_reference(name, ObjectKind.MODEL)
    if isinstance(reference, GivenName):
        return name if is_name(name) else unless_refused(ModelRefusal.UNKNOWN_MODEL)
    return (await _referent(request, control, caller, ObjectKind.MODEL, reference)).name


ModelName = Annotated[str, Depends(_model_name)]
"""Models are known by their names."""


async def _id(request: Request, control: Control, caller: Caller, kind: ObjectKind, text: str) -> UUID:
    reference = read_reference(text, kind)
    if isinstance(reference, UUID):
        return reference
    return (await _referent(request, control, caller, kind, reference)).id


async def _referent(
    request: Request, control: Control, caller: Caller, kind: ObjectKind, reference: Reference | ReferenceRefusal
) -> Referent:
    if isinstance(reference, ReferenceRefusal):
        raise RouteRefused(reference)
    route = request.scope["route"]
    assert isinstance(route, GuardedRoute), "no route is without a guard"
    owner = whose_objects(route.rule, caller)
    async with control.route_database.connection() as connection:
        found = await references.find(connection, kind, reference, owner, control.clock.now())
    if isinstance(found, ReferenceObjection):
        raise RouteRefused(found.refusal, sentence=found.sentence)
    return unless_refused(found)
