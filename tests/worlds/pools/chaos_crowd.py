"""Agents that do everything an agent can do, in a process that is killed: right, late, twice, wrong, forged, never.

A file in the crowd's home says how they are: `wild` draws what becomes of each offer, `calm` does the work, and `still`
leaves it where it is. SIGUSR1 cuts all of its links.
"""

import asyncio
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from random import Random
from uuid import UUID

from tests.worlds.pools.wire_agents import Crowd, Door, WireAgent
from tidemill.core.jobs.receipts import batch_bytes
from tidemill.wire.messages import Assignment, Cancel, ReceiptsMessage

LATE_S = (1.0, 6.0)
SOON_S = (0.0, 0.3)
OBEYS = 0.5
"""How likely somebody who is called off stops."""


class Mood(StrEnum):
    WILD = "wild"
    CALM = "calm"
    STILL = "still"


def mood_file(home: Path) -> Path:
    return home / "mood"


def begin(home: Path, door: Door, numbers: range, seed: int) -> None:
    asyncio.run(_run(home, door, numbers, Random(seed)))


async def _run(home: Path, door: Door, numbers: range, random: Random) -> None:
    company = Company(home, random)
    crowd = Crowd(home, door, numbers, random, company.offered, company.called_off)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, crowd.drop_links)
    await crowd.run()


class Company:
    """What the agents of a crowd do. Each attempt is looked at once in a life of theirs, however often it is told."""

    def __init__(self, home: Path, random: Random) -> None:
        self._mood = mood_file(home)
        self._random = random
        self._known: set[bytes] = set()
        self._off: set[bytes] = set()
        self._acts: tuple[tuple[int, Callable[[WireAgent, Assignment], None]], ...] = (
            (42, self._right),
            (22, self._slow),
            (8, self._decline),
            (5, self._break_its_word),
            (4, self._wrong),
            (4, self._fail),
            (5, self._twice),
            (4, self._vanish),
            (2, self._forge),
            (2, self._moved),
            (2, self._older),
            (2, self._stolen),
        )

    def offered(self, agent: WireAgent, offer: Assignment) -> None:
        mood = Mood(self._mood.read_text())
        if mood is Mood.STILL or offer.attempt_id in self._known:
            return
        self._known.add(offer.attempt_id)
        if mood is Mood.CALM:
            agent.deliver(agent.receipt(offer))
        else:
            acts = [act for _, act in self._acts]
            self._random.choices(acts, [weight for weight, _ in self._acts])[0](agent, offer)

    def called_off(self, agent: WireAgent, stop: Cancel) -> None:
        if self._random.random() < OBEYS:
            self._off.add(stop.attempt_id)

    def _right(self, agent: WireAgent, offer: Assignment) -> None:
        self._deliver_later(agent, offer, SOON_S)

    def _slow(self, agent: WireAgent, offer: Assignment) -> None:
        agent.accept(offer)
        agent.progress(offer)
        self._deliver_later(agent, offer, LATE_S)

    def _decline(self, agent: WireAgent, offer: Assignment) -> None:
        agent.decline(offer)

    def _break_its_word(self, agent: WireAgent, offer: Assignment) -> None:
        agent.accept(offer)
        self._later(SOON_S, lambda: agent.accept(offer))
        self._later(LATE_S, lambda: agent.decline(offer))

    def _wrong(self, agent: WireAgent, offer: Assignment) -> None:
        self._later(SOON_S, lambda: agent.deliver(agent.receipt(offer, wrong=True)))
        self._deliver_later(agent, offer, LATE_S)

    def _fail(self, agent: WireAgent, offer: Assignment) -> None:
        agent.deliver(agent.receipt(offer, failure=f"Machine {agent.number} fell over."))

    def _twice(self, agent: WireAgent, offer: Assignment) -> None:
        for within_s in (SOON_S, SOON_S, LATE_S):
            self._deliver_later(agent, offer, within_s)

    def _vanish(self, agent: WireAgent, offer: Assignment) -> None:
        agent.accept(offer)

    def _forge(self, agent: WireAgent, offer: Assignment) -> None:
        agent.report(ReceiptsMessage(batch_bytes([agent.receipt(offer)]), bytes(64)))
        self._deliver_later(agent, offer, SOON_S)

    def _moved(self, agent: WireAgent, offer: Assignment) -> None:
        agent.deliver(agent.receipt(offer)._replace(node_id=UUID(int=7)))
        self._deliver_later(agent, offer, SOON_S)

    def _older(self, agent: WireAgent, offer: Assignment) -> None:
        agent.deliver(agent.receipt(offer, lease=offer.lease + 1))
        self._deliver_later(agent, offer, SOON_S)

    def _stolen(self, agent: WireAgent, offer: Assignment) -> None:
        """Another node says that the work is its own."""
        thief = self._random.choice([one for one in agent.crowd.agents if one is not agent])
        if thief.has_joined:
            thief.deliver(thief.receipt(offer)._replace(node_id=thief.node_id))
        self._deliver_later(agent, offer, SOON_S)

    def _deliver_later(self, agent: WireAgent, offer: Assignment, within_s: tuple[float, float]) -> None:
        self._later(within_s, lambda: self._deliver(agent, offer))

    def _deliver(self, agent: WireAgent, offer: Assignment) -> None:
        if offer.attempt_id not in self._off:
            agent.deliver(agent.receipt(offer))

    def _later(self, within_s: tuple[float, float], act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(self._random.uniform(*within_s), act)
