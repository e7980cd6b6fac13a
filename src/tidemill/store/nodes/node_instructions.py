"""What nodes still have to be told, for the processes that hold their links. Telling twice does no harm, so nothing is
lost: if a process dies before it noted what it told, the next one tells it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.nodes.life import LifeRefusal
from tidemill.core.refusals import Refusal
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class PendingInstruction:
    """What a node has to be told: the rules of the pool, in JSON; or that its link is closed, and why."""

    node_id: UUID
    generation: int
    wishes: int
    rules: str
    removed: bool

    @property
    def close(self) -> Refusal | None:
        return LifeRefusal.NODE_REMOVED if self.removed else None


_UNTOLD = Query("nodes/node/untold", PendingInstruction)
_TOLD = Query("nodes/node/told")


async def pending_instructions(
    connection: Connection, process_id: UUID, node_ids: Sequence[UUID] | None = None
) -> list[PendingInstruction]:
    """All that a process has to tell its nodes, or only these nodes. Asking for all is meant for occasional checks."""
    ids = None if node_ids is None else list(node_ids)
    return await _UNTOLD.rows(connection, process_id=process_id, node_ids=ids)


async def mark_told(connection: Connection, instructions: Sequence[PendingInstruction]) -> None:
    """Note that these nodes were told. A node whose link is closed gets nothing more on it."""
    await _TOLD.run(
        connection,
        node_ids=[instruction.node_id for instruction in instructions],
        generations=[instruction.generation for instruction in instructions],
        wishes=[instruction.wishes for instruction in instructions],
    )
