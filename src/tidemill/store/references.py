"""What references may mean: for each kind of object one query, within what its caller may see.

`owner` limits the answer to one account's objects: another's is not found, whether it exists or not. Without an owner
all are meant, which is for operators, and for what everybody sees. Core chooses among what was found.
"""

from collections.abc import Mapping
from uuid import UUID

from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.keys import KeyRefusal
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import Instant
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.ledger import AdjustmentRefusal, PostingRefusal
from tidemill.core.models.model import ModelRefusal
from tidemill.core.nodes.join_tokens import JoinTokenRefusal
from tidemill.core.nodes.node import NodeRefusal
from tidemill.core.notices.mail import LetterRefusal
from tidemill.core.references import (
    CHOICES_MAX,
    FromLast,
    GivenName,
    IdEnd,
    ObjectKind,
    Reference,
    ReferenceObjection,
    Referent,
    choose,
    read_reference,
)
from tidemill.core.refusals import Refusal
from tidemill.core.trust.reviews import ReviewRefusal
from tidemill.store.query import Connection, Query

_REFER: Mapping[ObjectKind, Query[Referent]] = {
    ObjectKind.ACCOUNT: Query("accounts/account/refer", Referent),
    ObjectKind.ADJUSTMENT: Query("ledger/ledger/refer_adjustment", Referent),
    ObjectKind.ARTEFACT: Query("artefacts/artefact/refer", Referent),
    ObjectKind.JOB: Query("jobs/job/refer", Referent),
    ObjectKind.JOIN_TOKEN: Query("nodes/join_token/refer", Referent),
    ObjectKind.KEY: Query("accounts/key/refer", Referent),
    ObjectKind.LEDGER_ACCOUNT: Query("ledger/ledger/refer_account", Referent),
    ObjectKind.LETTER: Query("notices/mail/refer", Referent),
    ObjectKind.MODEL: Query("models/model/refer", Referent),
    ObjectKind.NODE: Query("nodes/node/refer", Referent),
    ObjectKind.REVIEW: Query("trust/review/refer", Referent),
    ObjectKind.SESSION: Query("accounts/session/refer", Referent),
}
_UNKNOWN: Mapping[ObjectKind, Refusal] = {
    ObjectKind.ACCOUNT: AccountStateRefusal.UNKNOWN_PERSON,
    ObjectKind.ADJUSTMENT: AdjustmentRefusal.UNKNOWN_ADJUSTMENT,
    ObjectKind.ARTEFACT: ArtefactRefusal.UNKNOWN_ARTEFACT,
    ObjectKind.JOB: JobRefusal.UNKNOWN_JOB,
    ObjectKind.JOIN_TOKEN: JoinTokenRefusal.UNKNOWN_JOIN_TOKEN,
    ObjectKind.KEY: KeyRefusal.UNKNOWN_KEY,
    ObjectKind.LEDGER_ACCOUNT: PostingRefusal.UNKNOWN_ACCOUNT,
    ObjectKind.LETTER: LetterRefusal.UNKNOWN_LETTER,
    ObjectKind.MODEL: ModelRefusal.UNKNOWN_MODEL,
    ObjectKind.NODE: NodeRefusal.UNKNOWN_NODE,
    ObjectKind.REVIEW: ReviewRefusal.REVIEW_UNKNOWN,
    ObjectKind.SESSION: SessionRefusal.UNKNOWN_SESSION,
}


async def resolve(
    connection: Connection, kind: ObjectKind, text: str, owner: UUID | None, now: Instant
) -> Referent | ReferenceObjection | Refusal:
    """What somebody's text means, for commands that are at the database themselves. A whole id is looked up, too."""
    reference = read_reference(text, kind)
    if isinstance(reference, Refusal):
        return reference
    return await find(connection, kind, reference, owner, now)


async def find(
    connection: Connection, kind: ObjectKind, reference: Reference, owner: UUID | None, now: Instant
) -> Referent | ReferenceObjection | Refusal:
    """The object that a reference means."""
    query = _REFER[kind]
    values = {
        "owner": owner,
        "id_end": _id_end(reference),
        "name": reference.text if isinstance(reference, GivenName) else None,
        "back": reference.back if isinstance(reference, FromLast) else None,
        "now": now,
        "limit": CHOICES_MAX + 1,
    }
    found = await query.rows(connection, **{name: values[name] for name in query.names})
    return choose(kind, reference, found) or _UNKNOWN[kind]


def _id_end(reference: Reference) -> str | None:
    if isinstance(reference, UUID):
        return reference.hex
    return reference.digits if isinstance(reference, IdEnd) else None
