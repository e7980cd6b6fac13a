"""Letters about machines that joined, so that an owner notices a stranger. One per token and hour is enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.accounts.account import Language
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.join_tokens import JoinToken, letter_due
from tidemill.core.notices.mail import Letter, LetterKind, LetterValue
from tidemill.store.notices import mail
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query


class _OwnerRow(NamedTuple):
    id: UUID
    address: str
    language: Language


_LETTERS = Query("notices/admission/letters", _OwnerRow)


@dataclass(frozen=True)
class JoinedMachine:
    """A machine that joined with a token, and where it called from."""

    token: JoinToken
    node: str
    address: str


async def write(
    transaction: Connection, joined: Sequence[JoinedMachine], keyring: Keyring, ids: Ids, now: Instant
) -> set[UUID]:
    """Write to the owners whose letters are due. Returns the tokens that were written about."""
    due = [machine for machine in joined if letter_due(machine.token, now)]
    if not due:
        return set()
    rows = await _LETTERS.rows(transaction, ids=list({machine.token.account_id for machine in due}))
    owners = {owner.id: owner for owner in rows}
    for machine in due:
        owner = owners[machine.token.account_id]
        parameters: dict[str, LetterValue] = {
            "node": machine.node,
            "token": machine.token.name,
            "address": machine.address,
            "at": now,
            "link": "/login",
        }
        letter = Letter(LetterKind.NODE_JOINED, owner.address, owner.language, parameters)
        await mail.write(transaction, keyring, letter, ids, now)
    return {machine.token.id for machine in due}
