"""Tells nodes whose links this process holds what they have not heard yet: new rules, challenges, their removal.

It repeats what the database says, so what was told twice does no harm and what was lost is told again on the next link.
"""

from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.nodes.reports import CHALLENGE, RULES
from tidemill.link.held.server import Links
from tidemill.store.nodes import challenges, node_instructions
from tidemill.store.nodes.node_instructions import PendingInstruction
from tidemill.wire.messages import Wish


class NodeInstructionLoop(Loop):
    """Looks every second, and at once when an event speaks of a node."""

    name = "telling"

    def __init__(self, parts: Parts, links: Links) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._links = links
        self._challenges: dict[UUID, tuple[int, bytes]] = {}

    async def tick(self, now: Instant) -> Tick:
        if not self._links.open:
            return Tick()
        told = await self._tell_wishes() + await self._tell_challenges(now)
        return Tick(seen=told, applied=told)

    async def _tell_wishes(self) -> int:
        async with self.parts.loop_database.connection() as connection:
            untold = await node_instructions.pending_instructions(connection, self.parts.process_id)
            told = [one for one in untold if self._tell(one)]
            if told:
                await node_instructions.mark_told(connection, told)
        return len(told)

    def _tell(self, untold: PendingInstruction) -> bool:
        if untold.close is not None:
            return self._links.close(untold.node_id, untold.close.code, untold.close.sentence)
        return self._links.instruct(untold.node_id, [Wish(RULES, untold.rules)])

    async def _tell_challenges(self, now: Instant) -> int:
        """Each order once a link: it is repeated only where the link that heard it is gone."""
        held = self._links.link_generations()
        self._challenges = {node_id: told for node_id, told in self._challenges.items() if node_id in held}
        async with self.parts.loop_database.connection() as connection:
            orders = await challenges.instructions_for(connection, list(held), self.parts.settings.challenge, now)
        fresh = [(node_id, (held[node_id], body)) for node_id, body in orders.items()]
        return sum([self._tell_challenge(node_id, order) for node_id, order in fresh])

    def _tell_challenge(self, node_id: UUID, order: tuple[int, bytes]) -> bool:
        if self._challenges.get(node_id) == order or not self._links.instruct(node_id, [Wish(CHALLENGE, order[1])]):
            return False
        self._challenges[node_id] = order
        return True
