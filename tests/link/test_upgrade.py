"""Links through the HTTP server of a control process: one port, handed over whole, each with its own limits."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from tests.worlds.agents.link_ends import POOL, Agent, MemoryRegistry, Served, StillClock, opening, soon
from tidemill.core.settings import Settings
from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.link.held.door import LinkRules
from tidemill.link.held.server import Links
from tidemill.serving.http_server import create_server, listen


async def slow_app(scope: Any, receive: Any, send: Any) -> None:
    """Answers every request after a while."""
    await asyncio.sleep(0.3)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def control(http: HttpSettings) -> AsyncIterator[Served]:
    registry = MemoryRegistry()
    links = Links(registry, POOL, StillClock(), LinkRules(beat_ms=30_000))
    listener = listen("127.0.0.1", 0)
    server = create_server(slow_app, Settings(home=Path("/nowhere"), http=http), links)
    server.on_started = lambda: None
    running = asyncio.create_task(links.run())
    serving = asyncio.create_task(server.serve([listener]))
    await soon(lambda: server.started)
    try:
        yield Served(links, registry, listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving
        running.cancel()


def on_uvloop(work: Coroutine[Any, Any, None]) -> None:
    """As control processes run; its transports are not asyncio's."""
    uvloop.run(asyncio.wait_for(work, 60))


def test_a_link_comes_in_by_the_port_of_the_api_and_outlives_its_deadlines() -> None:
    async def work() -> None:
        http = HttpSettings(header_deadline_s=0.5, body_deadline_s=0.5, write_deadline_s=0.5, keep_alive_s=1)
        async with control(http) as pool:
            agent, node_id = await pool.welcomed()
            await asyncio.sleep(2.5)
            assert node_id in pool.links.link_generations()
            agent.beat()
            await soon(lambda: bool(pool.registry.beats))
            assert not agent.lost.is_set()

    on_uvloop(work())


def test_links_do_not_count_as_connections_of_the_api() -> None:
    async def work() -> None:
        async with control(HttpSettings(connections_max=2)) as pool:
            for _ in range(20):
                await pool.welcomed()
            assert pool.links.open == 20
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await reader.readline()
            writer.close()

    on_uvloop(work())


def test_a_connection_that_owes_an_answer_becomes_no_link() -> None:
    async def work() -> None:
        async with control(HttpSettings()) as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + opening())
            with pytest.raises(ConnectionError):
                assert b"101" not in await reader.read()
                raise ConnectionResetError
            assert pool.links.shaking_hands == 0

    on_uvloop(work())


def test_a_connection_that_was_answered_may_become_a_link() -> None:
    async def work() -> None:
        async with control(HttpSettings()) as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            writer.write(opening())
            assert b"101" in await reader.readline()
            writer.close()

    on_uvloop(work())


def test_stopping_sends_agents_away_in_order() -> None:
    async def work() -> None:
        async with control(HttpSettings()) as pool:
            agents = [await pool.welcomed() for _ in range(10)]
        for agent, _ in agents:
            assert (await agent.closed()).code == "leaving"
        assert len(pool.registry.ended) == 10

    on_uvloop(work())


def test_links_come_in_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(chain), append=True)
    issued.private_key_pem.write_to_path(str(key))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def work() -> None:
        async with control(HttpSettings(tls_certificate=chain, tls_key=key)) as pool:
            dialled = await pool.agent(tls=trusting)
            assert isinstance(dialled, Agent)
            await dialled.joined()
            assert pool.links.open == 1

    on_uvloop(work())
