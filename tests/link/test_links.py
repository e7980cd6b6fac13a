"""A link server on a real socket: who comes in, what reaches the registry, and what becomes of it when that fails."""

import asyncio
import time
from uuid import uuid4

from tests.worlds.agents.link_ends import MemoryRegistry, facts, served, soon
from tidemill.core.signatures import Identity
from tidemill.link.held.door import LinkRules
from tidemill.wire.link import Closed, Instructed, Safe, TurnedAway
from tidemill.wire.messages import BeatMessage, Wish

SOME = Identity(bytes(range(3, 35)))


async def test_an_agent_comes_in_is_given_orders_and_is_known_here() -> None:
    registry = MemoryRegistry(orders=[Wish("rules", b"{}")])
    async with served(registry=registry) as pool:
        agent, node_id = await pool.welcomed()
        assert (await agent.until(Instructed)) == Instructed([Wish("rules", b"{}")])
        assert pool.links.link_generations() == {node_id: 1}
        assert pool.links.instruct(node_id, [Wish("versions", b"1")])
        await agent.until(Instructed, lambda event: event == Instructed([Wish("versions", b"1")]))
        assert not pool.links.instruct(uuid4(), [Wish("versions", b"1")])
        assert (pool.links.open, pool.links.shaking_hands, pool.links.counters.welcomed) == (1, 0, 1)


async def test_whom_the_registry_turns_away_is_told_why() -> None:
    async with served() as pool:
        agent = await pool.agent(join_token="bad")
        assert await agent.until(TurnedAway) == TurnedAway("token_unknown", "This join token is not known.", None)
        await asyncio.wait_for(agent.lost.wait(), 5)
        assert pool.links.counters.refused == {"token_unknown": 1}
        assert pool.registry.refusals == []
        await soon(lambda: pool.links.shaking_hands == 0)


async def test_hellos_that_come_while_others_are_decided_are_decided_together() -> None:
    async with served() as pool:
        pool.registry.gate.clear()
        agents = [await pool.agent()]
        await soon(lambda: pool.registry.batches == [1])
        agents += [await pool.agent() for _ in range(50)]
        await soon(lambda: pool.links.shaking_hands == 51)
        await asyncio.sleep(0.2)
        pool.registry.gate.set()
        for agent in agents:
            await agent.joined()
        assert pool.registry.batches == [1, 50]


async def test_a_registry_that_fails_sends_callers_away_until_it_is_back() -> None:
    async with served() as pool:
        pool.registry.broken = True
        times = set()
        for _ in range(5):
            turned = await (await pool.agent()).until(TurnedAway)
            assert isinstance(turned, TurnedAway)
            assert turned.code == "busy"
            assert turned.retry_ms
            assert 1_000 <= turned.retry_ms <= 5_000
            times.add(turned.retry_ms)
        assert len(times) > 1
        pool.registry.broken = False
        await pool.welcomed()


async def test_beats_are_told_once_a_second_the_newest_of_each_and_none_is_lost_to_a_fault() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        pool.registry.broken = True
        for number in range(1, 100):
            agent.beat(BeatMessage(number, 5, 1, 1, None, []))
        await asyncio.sleep(1.5)
        assert pool.registry.beats == []
        agent.beat(BeatMessage(100, 5, 1, 1, None, []))
        pool.registry.broken = False
        await soon(lambda: bool(pool.registry.beats))
        assert [(heard.link.node_id, heard.beat.number) for heard in pool.registry.beats] == [(node_id, 100)]
        assert [held.node_id for held in pool.registry.alive] == [node_id]


async def test_reports_are_kept_in_order_and_once_whatever_the_registry_does() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        expected = [facts(number) for number in range(1, 401)]
        for start in range(0, 400, 20):
            pool.registry.broken = start % 60 == 0
            agent.report(*expected[start : start + 20])
            await asyncio.sleep(0.02)
        pool.registry.broken = False
        await agent.until(Safe, lambda event: event == Safe(400))
        assert pool.registry.reports[node_id] == expected


async def test_what_a_node_says_while_others_are_decided_is_decided_together_and_in_its_order() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        pool.registry.gate.clear()
        for number in range(1, 101):
            agent.report(facts(number))
            await asyncio.sleep(0)
        await soon(lambda: pool.links.counters.frames_in >= 100)
        pool.registry.gate.set()
        await agent.until(Safe, lambda event: event == Safe(100))
        assert pool.registry.reports[node_id] == [facts(number) for number in range(1, 101)]
        assert len([event for event in agent.events if isinstance(event, Safe)]) <= 3


async def test_while_one_batch_is_decided_another_of_other_nodes_is_too() -> None:
    async with served() as pool:
        slow, slow_id = await pool.welcomed()
        quick, quick_id = await pool.welcomed()
        pool.registry.held_back.add(slow_id)
        slow.report(facts(1))
        await soon(lambda: pool.registry.deciding == {slow_id})
        slow.report(facts(2))
        for number in (1, 2, 3):
            quick.report(facts(number))
            await quick.until(Safe, lambda event, number=number: event == Safe(number))
        assert pool.registry.reports == {quick_id: [facts(1), facts(2), facts(3)]}
        pool.registry.held_back.clear()
        await slow.until(Safe, lambda event: event == Safe(2))
        assert pool.registry.reports[slow_id] == [facts(1), facts(2)]


async def test_a_node_whose_reports_wait_is_not_read_and_goes_on_afterwards() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        other, other_id = await pool.welcomed()
        pool.registry.gate.clear()
        large = [facts(number) for number in range(60)]
        for one in large:
            agent.report(type(one)("blob", bytes(60_000)))
        await asyncio.sleep(0.5)
        heard = pool.links.counters.bytes_in
        assert heard < 3_000_000
        pool.registry.gate.set()
        await agent.until(Safe, lambda event: event == Safe(60))
        other.report(facts(1))
        await other.until(Safe)
        assert len(pool.registry.reports[node_id]) == 60
        assert pool.registry.reports[other_id] == [facts(1)]


async def test_the_newest_link_of_a_node_takes_the_place_of_the_older() -> None:
    async with served() as pool:
        first, node_id = await pool.welcomed(SOME)
        second, same = await pool.welcomed(SOME)
        assert node_id == same
        assert (await first.closed()).code == "superseded"
        assert pool.links.link_generations() == {node_id: 2}
        second.beat()
        await soon(lambda: bool(pool.registry.beats))
        await soon(lambda: [held.generation for held in pool.registry.ended] == [1])
        assert second.link.state.value == "open"


async def test_a_link_that_another_process_has_taken_over_is_closed_when_it_next_speaks() -> None:
    async with served() as pool:
        beating, node_id = await pool.welcomed()
        reporting, other_id = await pool.welcomed()
        pool.registry.generations[node_id] += 1
        pool.registry.generations[other_id] += 1
        beating.beat()
        reporting.report(facts(1))
        assert (await reporting.closed()).code == "superseded"
        assert (await beating.closed()).code == "superseded"
        assert not pool.registry.reports[other_id]
        await soon(lambda: pool.links.open == 0)


async def test_a_node_is_closed_by_name_and_its_end_is_told() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        assert pool.links.close(node_id, "node_removed", "The owner removed this node.")
        assert await agent.closed() == Closed("node_removed", "The owner removed this node.", ours=False)
        await soon(lambda: [held.node_id for held in pool.registry.ended] == [node_id])
        assert not pool.links.close(node_id, "node_removed", "Again.")


async def test_who_leaves_before_the_answer_is_told_as_gone() -> None:
    async with served() as pool:
        pool.registry.gate.clear()
        agent = await pool.agent()
        await soon(lambda: bool(pool.registry.batches))
        agent.abort()
        await soon(lambda: pool.links.shaking_hands == 0)
        pool.registry.gate.set()
        await soon(lambda: len(pool.registry.ended) == 1)
        assert pool.links.open == 0


async def test_draining_sends_everybody_away_over_a_while_and_lets_nobody_in() -> None:
    async with served() as pool:
        agents = [await pool.welcomed() for _ in range(30)]
        began = asyncio.get_running_loop().time()
        draining = asyncio.create_task(pool.links.drain())
        times = []
        for agent, _ in agents:
            assert (await agent.closed()).code == "leaving"
        await draining
        times.append(asyncio.get_running_loop().time() - began)
        assert 1 < times[0] < 4
        late = await pool.agent()
        assert (await late.closed()).code == "busy"
        assert {held.node_id for held in pool.registry.ended} == {node_id for _, node_id in agents}
        assert pool.links.open == 0


async def test_a_link_without_beats_is_still_told_as_alive_and_a_silent_one_is_cut() -> None:
    async with served(LinkRules(beat_ms=1_000)) as pool:
        _, node_id = await pool.welcomed()
        frozen, frozen_id = await pool.welcomed()
        assert frozen.transport
        frozen.transport.pause_reading()
        await soon(lambda: node_id in {held.node_id for held in pool.registry.alive})
        await soon(lambda: frozen_id not in pool.links.link_generations())
        assert node_id in pool.links.link_generations()
        assert pool.links.counters.refused["silent"] == 1
        assert pool.registry.refusals == []


async def test_a_process_that_could_not_hear_calls_nobody_silent() -> None:
    async with served(LinkRules(beat_ms=1_000)) as pool:
        _, node_id = await pool.welcomed()
        await asyncio.sleep(0.3)
        time.sleep(4)  # noqa: ASYNC251  # as a process that was stopped
        await asyncio.sleep(1)
        assert node_id in pool.links.link_generations()


async def test_many_agents_come_in_at_once_and_come_back_at_once() -> None:
    rules = LinkRules(beat_ms=30_000, shaking_from_one_address_max=1000)
    async with served(rules) as pool:
        identities = [Identity(number.to_bytes(32, "big")) for number in range(300)]
        first = await asyncio.gather(*(pool.welcomed(identity) for identity in identities))
        for agent, _ in first:
            agent.abort()
        second = await asyncio.gather(*(pool.welcomed(identity) for identity in identities))
        assert [node_id for _, node_id in first] == [node_id for _, node_id in second]
        assert pool.links.open == 300
        await soon(lambda: len(pool.registry.ended) == 300)
        assert set(pool.links.link_generations().values()) == {2}
