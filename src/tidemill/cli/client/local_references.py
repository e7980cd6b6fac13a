"""What a reference means, for commands that are at the database themselves: whoever runs the pool sees everything."""

from uuid import UUID

from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.references import ObjectKind, ReferenceObjection
from tidemill.core.refusals import Refusal
from tidemill.store import references
from tidemill.store.clock import read_clock
from tidemill.store.query import Connection


async def meant(connection: Connection, kind: ObjectKind, text: str) -> UUID:
    """The id of the object that a text means."""
    found = await references.resolve(connection, kind, text, None, await read_clock(connection))
    if isinstance(found, Refusal | ReferenceObjection):
        raise CommandRefused(found.sentence)
    return found.id
