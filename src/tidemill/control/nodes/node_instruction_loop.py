"""Sends nodes whose links this process holds their pending instructions: new rules, challenges, their removal.

Instructions repeat what the database says: a second one does no harm, and a lost one is sent again on the next link.
"""

from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.nodes.events import NodeRemoved, NodeRulesChanged, NodeSuspended
from tidemill.core.nodes.health.events import NodeOnline
from tidemill.core.nodes.reports import CHALLENGE, RULES
from tidemill.link.held.server import Links
from tidemill.store.nodes import challenges, node_instructions
from tidemill.store.nodes.node_instructions import PendingInstruction
from tidemill.wire.messages import Wish


class NodeInstructionLoop(Loop):
    """Looks every second, and at once when there is something to say to a node."""

    name = "node_instructions"
    wakes_on = frozenset({NodeRulesChanged, NodeSuspended, NodeRemoved, NodeOnline})

    def __init__(self, parts: Parts, links: Links) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._links = links
        self._challenges: dict[UUID, tuple[int, bytes]] = {}

    async def tick(self, now: Instant) -> Tick:
        if not self._links.open:
            return Tick()
        sent = await self._send_pending() + await self._send_challenges(now)
        return Tick(seen=sent, applied=sent)

    async def _send_pending(self) -> int:
        async with self.parts.loop_database.connection() as connection:
            pending = await node_instructions.pending_instructions(connection, self.parts.process_id)
            sent = [instruction for instruction in pending if self._send(instruction)]
            if sent:
                await node_instructions.mark_told(connection, sent)
        return len(sent)

    def _send(self, instruction: PendingInstruction) -> bool:
        if instruction.close is not None:
            return self._links.close(instruction.node_id, instruction.close.code, instruction.close.sentence)
        return self._links.instruct(instruction.node_id, [Wish(RULES, instruction.rules.encode())])

    async def _send_challenges(self, now: Instant) -> int:
        """Send each instruction once a link: it is repeated only on a newer link."""
        generations = self._links.link_generations()
        self._challenges = {node_id: sent for node_id, sent in self._challenges.items() if node_id in generations}
        async with self.parts.loop_database.connection() as connection:
            bodies = await challenges.instructions_for(
                connection, list(generations), self.parts.settings.challenge, now
            )
        fresh = [(node_id, (generations[node_id], body)) for node_id, body in bodies.items()]
        return sum([self._send_challenge(node_id, challenge) for node_id, challenge in fresh])

    def _send_challenge(self, node_id: UUID, challenge: tuple[int, bytes]) -> bool:
        if self._challenges.get(node_id) == challenge or not self._links.instruct(
            node_id, [Wish(CHALLENGE, challenge[1])]
        ):
            return False
        self._challenges[node_id] = challenge
        return True
