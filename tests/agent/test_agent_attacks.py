"""What a pool that means ill, or somebody in its place, can make an agent do: nothing that harms its machine or locks
its owner out."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.agent.machine.test_prover import ASK, CPU, TASK, Desk
from tests.worlds.agents.shelf import ShelfOfArtefacts
from tidemill.agent.home.home import Home
from tidemill.agent.home.identity import new_membership
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.link.instructions import InstructionFollower
from tidemill.agent.standing import AgentStanding, LinkStanding, LinkState
from tidemill.agent.work.attempt_directories import AttemptDirectories
from tidemill.agent.work.work import WorkInHand
from tidemill.agent.work.workshop import Workshop
from tidemill.cli.agent import agent_service
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.clock import Instant
from tidemill.core.nodes.challenge.messages import AnswerStep
from tidemill.core.nodes.challenge.tasks import SpeedTask
from tidemill.core.nodes.join_tokens import JoinTokenParts, read_token, write_token
from tidemill.core.nodes.pool_urls import is_pool_url
from tidemill.core.nodes.rules.rule_book import AT_MAX, RuleBook, rules_of
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.signatures import Identity
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.spool import Spool
from tidemill.serving.logs import _lines_for_people
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.messages import Assignment, ReceiptsMessage, Wish

NOW = Instant(1_800_000_000_000_000)
POOL = "https://pool.example.com"


@dataclass
class Obeying:
    """The part of an agent that obeys, with its real files."""

    orders: InstructionFollower
    standing: AgentStanding
    reporting: Reporter
    rules: RulesFile
    moves: list[Sequence[str]]

    async def hear(self, kind: str, body: object) -> None:
        await self.orders.obey(Wish(kind, json.dumps(body).encode()))


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Obeying]:
    spool = await Spool.open(tmp_path / "spool.sqlite", 16 * 1024)
    membership = new_membership(bytes(32), "0" * 64, [POOL])
    link = LinkStanding(LinkState.LINKED, POOL, NOW)
    standing = AgentStanding(membership, HeatLimits(85, 80), link, NOW)
    reporting, rules = Reporter(spool), RulesFile(tmp_path / "rules.json")
    moves: list[Sequence[str]] = []

    async def moved(urls: Sequence[str]) -> None:
        moves.append(urls)

    desk = Desk(CPU)
    workshop, kept = Workshop(tmp_path, (), ("No sandbox works here.",)), AttemptDirectories(tmp_path / "attempts")
    shelf = ShelfOfArtefacts(tmp_path / "artefacts")
    work = WorkInHand(workshop, kept, (shelf, shelf), standing, reporting)
    working = asyncio.create_task(work.run())
    orders = InstructionFollower(standing, reporting, rules, work, desk.prover, changed=lambda: None, moved=moved)
    yield Obeying(orders, standing, reporting, rules, moves)
    working.cancel()
    await asyncio.wait([working])
    await desk.prover.close()
    await spool.close()


@pytest.mark.parametrize("url", ["https://" + "a" * 64 + ".example", "https://a..b"])
async def test_an_address_that_no_name_can_be_is_none(agent: Obeying, url: str) -> None:
    """Whoever called there would fail in a way that nobody expects, at each start anew."""
    assert not is_pool_url(url)
    await agent.hear("addresses", [url])
    assert agent.moves == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/admin", "http://localhost:631", "http://[::1]:9000"])
async def test_a_pool_sends_no_agent_to_the_doors_of_its_own_machine(agent: Obeying, url: str) -> None:
    await agent.hear("addresses", [POOL, url])
    assert agent.moves == []
    await agent.hear("addresses", [POOL, "https://other.example.com"])
    assert agent.moves == [[POOL, "https://other.example.com"]]
    agent.standing.link = replace(agent.standing.link, url="http://127.0.0.1:8000")
    await agent.hear("addresses", ["http://127.0.0.1:8001"])
    assert agent.moves[1:] == [["http://127.0.0.1:8001"]], "a pool on this machine may have others there"


@pytest.mark.parametrize("at", [AT_MAX, AT_MAX - 1, AT_MAX // 2 + 1])
async def test_a_rule_of_the_last_day_does_not_lock_the_owner_out(agent: Obeying, at: int) -> None:
    locked = {"work": {"value": "run", "by": "the pool", "place": "pool", "at": at}}
    await agent.hear("rules", locked)
    assert agent.rules.read() == RuleBook()
    assert agent.standing.complaints
    for step in range(5):
        far = AT_MAX // 2 + step * 10**6
        await agent.hear("rules", {"work": {"value": "run", "by": "the pool", "place": "pool", "at": far}})
        agent.rules.change({"work": "pause"}, by="owner", now=NOW)
        agent.standing.book = agent.rules.read()
        await agent.hear("rules", {"work": {"value": "run", "by": "the pool", "place": "pool", "at": far}})
        assert rules_of(agent.rules.read()).work == "pause", "what the owner set last counts"


async def test_a_pool_that_asks_without_end_and_receives_nothing_fills_no_disk(agent: Obeying) -> None:
    for number in range(2_000):
        await agent.orders.obey(Assignment(number.to_bytes(16, "big"), 1, 0, b""))
    spool = agent.reporting.spool
    assert spool.last_number < 1_000
    assert agent.reporting.complaint
    before = spool.last_number
    assert await agent.reporting.report(ReceiptsMessage(b"paid for", bytes(64)))
    assert spool.last_number == before + 1


@pytest.mark.parametrize(
    "tasks",
    [
        (TASK,) * 64,
        (TASK, replace(TASK, speed=SpeedTask(1, 64, 1))),
    ],
)
async def test_a_device_is_not_asked_for_its_memory_many_times_at_once(tasks: tuple[object, ...]) -> None:
    desk = Desk(CPU)
    await desk.take(replace(ASK, tasks=tasks))  # type: ignore[arg-type]
    await asyncio.sleep(0.2)
    assert desk.answers == []
    await desk.prover.close()


@pytest.mark.needs("root")
def test_the_installer_gives_away_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    treasure = tmp_path / "etc"
    treasure.mkdir(mode=0o700)
    (treasure / "shadow").write_text("x")
    (tmp_path / "home").symlink_to(treasure)
    with pytest.raises(CommandRefused, match="symbolic link"):
        agent_service._give(Home(tmp_path / "home"), "nobody")
    assert {path.stat().st_uid for path in (treasure, treasure / "shadow")} == {0}


def test_nothing_that_is_shown_of_an_agent_holds_its_secrets() -> None:
    """Not in what values say of themselves, and not in what a log for people says of an error."""
    shown, seed = read_token(write_token(UUID(int=1), b"secret" * 5 + b"!!", "0" * 64)), b"seed" * 8
    assert isinstance(shown, JoinTokenParts)
    applicant = CallingAgent(Identity(seed), shown.fingerprint, "tidemill/0.1", bytes(16), join_token=shown.secret_part)
    assert shown.secret_part not in repr((shown, applicant))
    assert "seedseed" not in repr((applicant, new_membership(seed, "0" * 64, [POOL])))
    with pytest.raises(ValueError, match="64") as raised:
        _fails(shown.secret_part)
    line = _lines_for_people()(None, "error", {"event": "failed", "level": "error", "exc_info": raised.value})
    assert "ValueError" in line
    assert shown.secret_part not in line


def _fails(join_token: str) -> None:
    raise ValueError(len(join_token))


async def test_a_multiplication_that_would_fill_the_memory_is_not_begun() -> None:
    desk = Desk(CPU)
    huge = replace(TASK, speed=SpeedTask(1, 8192, 1_000_000))
    await desk.take(replace(ASK, tasks=(huge,)))
    async with asyncio.timeout(30):
        while not desk.answers:  # a thread brings it about
            await asyncio.sleep(0.01)
    assert desk.answers[0].step is AnswerStep.CANNOT
    assert "are free" in desk.answers[0].words
    await desk.prover.close()
