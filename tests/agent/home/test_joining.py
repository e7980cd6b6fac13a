"""Joining: one command, one identity, one use of the token; a refusal leaves nothing behind."""

import asyncio
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from tests.worlds.agents.agent_machine import OwnersMachine, machine_in, until
from tests.worlds.agents.pool_end import PoolEnd
from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import clean_environment
from tests.worlds.pools.terminal import Terminal, at_terminal
from tidemill.agent.agent import Agent
from tidemill.agent.home.home import Home
from tidemill.agent.startup import applicant_in, equipped, joined
from tidemill.core.nodes.join_tokens import JoinTokenParts, JoinTokenRefusal, read_token
from tidemill.core.nodes.machine.hardware import Machine, machine_of, objections
from tidemill.core.settings import Settings
from tidemill.link.dialled.connection import PoolUnreachable
from tidemill.wire.messages import RefusedMessage


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[OwnersMachine]:
    async with machine_in(tmp_path) as machine:
        yield machine


async def test_a_machine_joins_and_tells_what_it_is_and_goes_on(pool: PoolEnd, machine: OwnersMachine) -> None:
    process = await machine.join(pool.url, pool.token)
    await until(lambda: bool(pool.nodes), "a node is registered", 30)
    await until(lambda: len(pool.node.beats) > 2, "it beats")
    await until(lambda: bool(pool.node.facts("machine") and pool.node.facts("clock")), "it tells what it is")
    told = machine_of(pool.node.facts("machine")[0])
    assert isinstance(told, Machine)
    assert not objections(told)
    assert json.loads(pool.node.facts("clock")[0]).keys() == {"utc_offset_s"}
    assert f"This machine is node {pool.node.node_id} of the pool." in machine.said()
    status = await machine.status()
    assert status["joined"]
    assert status["pid"] == process.pid
    assert status["link"]["state"] == "linked"
    assert status["node_id"] == str(pool.node.node_id)
    assert status["age_s"] < 5
    process.terminate()
    assert await process.wait() == 0
    await until(lambda: bool(pool.goodbyes), "its goodbye is heard")
    assert pool.goodbyes[0] == "leaving"
    assert (await machine.status())["pid"] is None


async def test_a_join_with_once_leaves_the_running_to_others(pool: PoolEnd, machine: OwnersMachine) -> None:
    done = await machine.do("join", pool.url, "--once", stdin=pool.token)
    assert done.code == 0, done.said
    running = await machine.start("run")
    await until(lambda: pool.node.generation == 2, "it came back by its identity")
    await until(lambda: bool(pool.node.facts("machine")), "it tells what it is")
    assert pool.hellos[-1].node_id == pool.node.node_id.bytes
    assert pool.hellos[-1].join_token is None
    assert pool.hellos[-1].instance != pool.hellos[0].instance
    running.terminate()
    assert await running.wait() == 0


async def test_a_run_that_only_joins_tells_nothing_of_the_machine_however_long_it_takes(
    pool: PoolEnd, tmp_path: Path
) -> None:
    """The pool challenges what it is told of, and the run that comes after would know nothing of the challenge."""
    token, home = read_token(pool.token), Home(tmp_path / "machine")
    assert isinstance(token, JoinTokenParts)
    async with equipped(home, Settings(home=tmp_path)) as equipment:
        agent = Agent(equipment, applicant_in(home, token, [pool.url], None), token.secret_part)
        running = asyncio.create_task(agent.only_join())
        await joined(agent, running)
        await asyncio.sleep(1)
        assert not running.done()
        agent.stop()
        await running
    assert pool.node.reports == []


async def test_the_token_may_be_in_a_file_and_the_pool_never_sees_the_fingerprint(
    pool: PoolEnd, machine: OwnersMachine, tmp_path: Path
) -> None:
    token = pool.token
    (tmp_path / "token").write_text(token + "\n")
    done = await machine.do("join", pool.url, "--once", "--token-file", str(tmp_path / "token"))
    assert done.code == 0, done.said
    assert pool.hellos[0].join_token == token.split(".")[1]


async def test_a_machine_joins_once(pool: PoolEnd, machine: OwnersMachine) -> None:
    assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0
    before = (machine.home / "membership.json").read_bytes()
    again = await machine.do("join", pool.url, "--once", stdin=pool.token)
    assert again.code == 5
    assert "tidemill agent leave" in again.said
    assert (machine.home / "membership.json").read_bytes() == before
    assert len(pool.hellos) == 1


async def test_a_lost_welcome_is_asked_for_again_with_the_same_identity(pool: PoolEnd, machine: OwnersMachine) -> None:
    pool.loses_welcomes = 2
    done = await machine.do("join", pool.url, "--once", stdin=pool.token)
    assert done.code == 0, done.said
    assert len(pool.hellos) == 3
    assert len({hello.key for hello in pool.hellos}) == 1
    assert len(pool.nodes) == 1


async def test_a_join_that_was_killed_before_its_welcome_is_repeated_with_the_same_identity(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    pool.loses_welcomes = 10**6
    token = pool.token
    killed = await machine.join(pool.url, token)
    await until(lambda: bool(pool.hellos), "it said hello")
    killed.kill()
    await killed.wait()
    assert not (await machine.status())["joined"]
    refused = await machine.do("run")
    assert refused.code == 1
    assert "tidemill agent join" in refused.said
    pool.loses_welcomes = 0
    assert (await machine.do("join", pool.url, "--once", stdin=token)).code == 0
    assert len({hello.key for hello in pool.hellos}) == 1


async def test_rules_that_were_set_before_a_join_outlive_a_refused_one(pool: PoolEnd, machine: OwnersMachine) -> None:
    assert (await machine.do("rules", "set", "windows=22:00-08:00")).code == 0
    pool.refusal = RefusedMessage("join_token_expired", "The time of this join token is over: make a new one.")
    assert (await machine.do("join", pool.url, stdin=pool.token)).code == 1
    pool.refusal = None
    assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0
    assert "22:00" in (await machine.do("rules", "show")).out
    await machine.start("run")
    await until(lambda: bool(pool.node.facts("rules")), "the pool is told")


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("refusal", [JoinTokenRefusal.JOIN_TOKEN_USED_UP, JoinTokenRefusal.JOIN_TOKEN_REVOKED])
async def test_a_refused_join_says_why_and_leaves_nothing_even_where_tasks_can_run(
    refusal: JoinTokenRefusal, pool: PoolEnd
) -> None:
    """Other users than the agent's can pass to this home, so a sandbox is open when the refusal comes."""
    pool.refusal = RefusedMessage(refusal.code, refusal.sentence)
    with reachable_directory() as place:
        async with machine_in(place) as machine:
            done = await machine.do("join", pool.url, stdin=pool.token)
            assert done.code == 1, done.said
            assert refusal.sentence in done.said
            assert "sandbox not usable" not in done.said
            assert sorted(file.name for file in machine.home.iterdir()) == ["agent.lock"]
            assert [file.name for file in place.iterdir()] == ["machine"]
            pool.refusal = None
            assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0


@pytest.mark.parametrize("token", ["", "tidemill-join-1.x.y", "a" * 5_000, "tidemill-join-1." + "ü" * 64, "\0\n"])
async def test_what_is_no_token_is_refused_before_anybody_is_called(
    token: str, pool: PoolEnd, machine: OwnersMachine
) -> None:
    done = await machine.do("join", pool.url, stdin=token)
    assert done.code == 1
    assert "This is no join token" in done.said
    assert not pool.hellos
    assert not machine.home.exists()


async def test_a_token_of_another_pool_joins_nothing(pool: PoolEnd, machine: OwnersMachine) -> None:
    done = await machine.do("join", pool.url, stdin=PoolEnd().token)
    assert done.code == 1
    assert "not the pool that the join token was made by" in done.said
    assert not pool.hellos, "whoever is not our pool learns nothing"
    assert not (machine.home / "membership.json").exists()


@pytest.mark.parametrize("url", ["http://pool.example.com", "ftp://127.0.0.1", "https://a:b@127.0.0.1", "nowhere"])
async def test_an_address_that_would_leak_the_token_is_refused(url: str, machine: OwnersMachine) -> None:
    done = await machine.do("join", url, stdin=PoolEnd().token)
    assert done.code == 5
    assert "https://" in done.said


async def test_an_authority_of_our_own_is_trusted_when_it_is_given_and_remembered(
    machine: OwnersMachine, tmp_path: Path
) -> None:
    authority = trustme.CA()
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(trust)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    pool = PoolEnd(trust=trust)
    await pool.come()
    joining = asyncio.create_task(
        machine.do("join", pool.url, "--once", "--ca", str(tmp_path / "ca.pem"), stdin=pool.token)
    )
    done = await joining
    assert done.code == 0, done.said
    (tmp_path / "ca.pem").unlink()
    running = await machine.start("run")
    await until(lambda: pool.node.generation == 2, "the authority is remembered")
    running.terminate()
    await running.wait()
    await pool.go()


@pytest.mark.soak
def test_a_terminal_asks_for_the_token_and_says_after_a_while_that_nobody_listens(tmp_path: Path) -> None:
    token = PoolEnd().token
    terminal = joining_at_terminal(tmp_path, "https://127.0.0.1:1")
    terminal.answer("Join token", token)
    assert terminal.end() == 5
    assert "Nobody listens at 127.0.0.1" in terminal.shown
    assert token.split(".")[1] not in terminal.shown
    assert not (tmp_path / "machine" / "membership.json").exists(), "nobody can have registered it"


async def test_a_terminal_asks_for_the_token_and_does_not_show_it(pool: PoolEnd, tmp_path: Path) -> None:
    token = PoolEnd().token
    terminal = joining_at_terminal(tmp_path, pool.url)
    await asyncio.to_thread(terminal.answer, "Join token", token)
    assert await asyncio.to_thread(terminal.end) == 1
    assert "not the pool that the join token was made by" in terminal.shown
    assert token.split(".")[1] not in terminal.shown
    assert not (tmp_path / "machine" / "membership.json").exists()


def test_a_terminal_says_once_that_nobody_listens_and_how_to_stop(tmp_path: Path) -> None:
    terminal = joining_at_terminal(tmp_path, "https://127.0.0.1:1")
    terminal.answer("Join token", PoolEnd().token)
    while "Ctrl-C" not in terminal.shown:
        assert terminal.read()
    os.kill(terminal.process_id, signal.SIGINT)
    assert terminal.end() == 1
    assert terminal.shown.count("Nobody listens at 127.0.0.1") == 1
    assert "tried again for 30 s" in " ".join(terminal.shown.split())
    assert "link lost" not in terminal.shown


def joining_at_terminal(place: Path, url: str) -> Terminal:
    settings = {"TIDEMILL_AGENT_HOME": str(place / "machine")}
    return at_terminal(clean_environment(place, 1, settings), "agent", "join", url)


async def test_a_join_to_which_nobody_listens_leaves_nothing(tmp_path: Path) -> None:
    token = read_token(PoolEnd().token)
    assert isinstance(token, JoinTokenParts)
    home = Home(tmp_path / "machine")
    with pytest.raises(PoolUnreachable, match=r"Nobody listens at 127\.0\.0\.1"):
        async with equipped(home, Settings(home=tmp_path)) as equipment:
            agent = Agent(equipment, applicant_in(home, token, ["https://127.0.0.1:1"], None), token.secret_part)
            running = asyncio.create_task(agent.run())
            await joined(agent, running, within_s=1)
    assert not home.membership.exists(), "nobody can have registered it"


async def test_two_joins_at_once_make_one_node(pool: PoolEnd, machine: OwnersMachine) -> None:
    token = pool.token
    done = await asyncio.gather(*(machine.do("join", pool.url, "--once", stdin=token) for _ in range(2)))
    assert sorted(one.code for one in done) in ([0, 0], [0, 5])
    assert len(pool.nodes) == 1
