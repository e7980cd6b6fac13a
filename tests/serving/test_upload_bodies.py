"""Large bodies that are taken straight from their connection, as control processes run: every byte once, and in order.

Whatever becomes of a body, its connection is whole again afterwards or closed.
"""

import asyncio
import random
import ssl
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from tidemill.core.settings import Settings
from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.serving.http_server import create_server, listen
from tidemill.serving.large_bodies import may_be_large
from tidemill.serving.upload_body import (
    BODY,
    BUFFER_BYTES,
    LARGE_BODIES,
    LEAST_BYTES,
    SMALL_BUFFER_BYTES,
    ConnectionBody,
    UploadBody,
)

CONTENT = random.Random(8).randbytes(2 * BUFFER_BYTES + LEAST_BYTES + 77)
Take = Callable[[UploadBody], Awaitable[None]]


@dataclass
class Served:
    """A server that keeps what it is sent. `take` says how it takes the body of an upload; `taken` has whether that is
    taken straight from the connection."""

    port: int = 0
    take: Take | None = None
    bodies: list[bytes] = field(default_factory=list)
    taken: list[bool] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body: UploadBody | None = scope["state"].get(BODY)
        assert (body is not None) == may_be_large(scope["method"], scope["path"])
        self.taken.append(isinstance(body, ConnectionBody))
        if body:
            await (self.take or self.take_all)(body)
        else:
            await self._receive_all(receive)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def take_all(self, body: UploadBody) -> None:
        taken = bytearray()
        async for piece in body.pieces(0):
            taken += piece
        self.bodies.append(bytes(taken))

    async def _receive_all(self, receive: Any) -> None:
        taken, message = b"", {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            taken += message.get("body", b"")
        self.bodies.append(taken)


@asynccontextmanager
async def served(**http: Any) -> AsyncIterator[Served]:
    one, listener = Served(), listen("127.0.0.1", 0)
    one.port = listener.getsockname()[1]
    server = create_server(one, Settings(home=Path("/nowhere"), http=HttpSettings(**http)))
    started = asyncio.Event()
    server.on_started = started.set
    serving = asyncio.create_task(server.serve([listener]))
    await started.wait()
    try:
        yield one
    finally:
        server.should_exit = True
        await serving


def head(length: int | None, *more: str, method: str = "PATCH") -> bytes:
    lines = [f"{method} /api/v1/artefacts/uploads/1 HTTP/1.1", "Host: x", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


async def answers(reader: asyncio.StreamReader, count: int = 1) -> None:
    for _ in range(count):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(2) == b"ok"


async def soon(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def run(work: Coroutine[Any, Any, None]) -> None:
    """As control processes run; its transports are not asyncio's."""
    uvloop.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("loop", [uvloop.run, asyncio.run])
def test_every_byte_arrives_once_however_it_is_cut_and_the_connection_goes_on(
    loop: Callable[..., None], tls: bool, tmp_path: Path
) -> None:
    dice = random.Random(seed := random.SystemRandom().randrange(2**32))
    certificate, trust = _certificate(tmp_path) if tls else ({}, None)

    async def work() -> None:
        async with served(**certificate) as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port, ssl=trust)
            answered = asyncio.create_task(answers(reader, 4))
            stream, at = (head(len(CONTENT)) + CONTENT) * 3 + head(None, method="GET"), 0
            while at < len(stream):
                end = at + dice.choice([1, 100, 5_000, 70_000, 300_000, 1_500_000])
                writer.write(stream[at:end])
                await writer.drain()
                await asyncio.sleep(dice.choice([0, 0, 0.001]))
                at = end
            await answered
            assert pool.bodies == [CONTENT, CONTENT, CONTENT, b""], f"seed {seed}"
            assert pool.taken[0]
            writer.close()

    loop(asyncio.wait_for(work(), 60))


def test_bodies_one_after_another_are_all_taken_by_one_connection() -> None:
    async def work() -> None:
        async with served() as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            for _ in range(5):
                writer.write(head(len(CONTENT)) + CONTENT)
                await answers(reader)
                writer.write(head(3) + b"end")
                await answers(reader)
            assert pool.bodies == [CONTENT, b"end"] * 5
            assert pool.taken == [True, False] * 5
            writer.close()

    run(work())


def test_what_came_before_a_connection_broke_is_handed_out() -> None:
    async def work() -> None:
        async with served() as pool:
            for sent in (0, 1, 100_000, LEAST_BYTES, len(CONTENT) - 1):
                _, writer = await asyncio.open_connection("127.0.0.1", pool.port)
                writer.write(head(len(CONTENT)) + CONTENT[:sent])
                await writer.drain()
                writer.close()
                await soon(lambda: bool(pool.bodies))
                assert pool.bodies.pop() == CONTENT[:sent]

    run(work())


@pytest.mark.parametrize("length", [700_000, None, len(CONTENT)])
def test_what_came_before_a_connection_broke_is_handed_out_also_to_who_asks_late(length: int | None) -> None:
    sent, how = CONTENT[:50_000], [] if length else ["Transfer-Encoding: chunked"]

    async def late(body: UploadBody) -> None:
        await asyncio.sleep(0.3)
        await pool_of[0].take_all(body)

    pool_of: list[Served] = []

    async def work() -> None:
        async with served() as pool:
            pool_of.append(pool)
            pool.take = late
            _, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(length, *how) + (b"" if length else b"%x\r\n" % len(CONTENT)) + sent)
            await writer.drain()
            writer.close()
            await soon(lambda: bool(pool.bodies))
            assert pool.bodies == [sent]

    run(work())


def test_what_comes_slowly_is_handed_out_soon() -> None:
    came = [0]

    async def watched(body: UploadBody) -> None:
        async for piece in body.pieces(5):
            came[0] += len(piece)

    async def work() -> None:
        async with served() as pool:
            pool.take = watched
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(len(CONTENT)))
            for at in range(0, 300_000, 100_000):
                writer.write(CONTENT[at : at + 100_000])
                await soon(lambda until=at + 100_000: came == [until])
            writer.write(CONTENT[300_000:])
            await answers(reader)
            assert came == [len(CONTENT)]
            writer.close()

    run(work())


def test_a_connection_that_waits_for_its_next_request_keeps_no_memory_of_its_last_body() -> None:
    places: weakref.WeakSet[mmap] = weakref.WeakSet()
    seen: list[int] = []

    async def watched(body: UploadBody) -> None:
        async for piece in body.pieces(0):
            if isinstance(piece.obj, mmap):
                places.add(piece.obj)
                seen.append(len(places))

    async def work() -> None:
        async with served() as pool:
            pool.take = watched
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(len(CONTENT)) + CONTENT)
            await answers(reader)
            await soon(lambda: not places)
            assert max(seen) == 3
            writer.close()

    run(work())


def test_many_large_bodies_at_a_time_have_little_memory_each() -> None:
    most = 0

    async def watched(body: UploadBody) -> None:
        nonlocal most
        large = 0
        async for piece in body.pieces(0):
            large = max(large, len(piece))
            await everybody.wait()
        most += large > SMALL_BUFFER_BYTES

    everybody = asyncio.Event()

    async def work() -> None:
        async with served() as pool:
            pool.take = watched
            for turn in (1, 2):  # whose body is over has given back his place
                sent = [await asyncio.open_connection("127.0.0.1", pool.port) for _ in range(9)]
                for _, writer in sent:
                    writer.write(head(len(CONTENT)) + CONTENT)
                await soon(lambda until=9 * turn: len(pool.taken) == until)
                everybody.set()
                for reader, writer in sent:
                    await answers(reader)
                    writer.close()
                everybody.clear()
            assert most == 2 * LARGE_BODIES

    run(work())


@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_of_a_body_that_is_not_wanted_to_its_end_the_rest_is_dropped_and_the_next_request_answered(wanted: int) -> None:
    async def some(body: UploadBody) -> None:
        if not isinstance(body, ConnectionBody):
            return await pool_of[0].take_all(body)
        pieces = body.pieces(0)
        for _ in range(wanted):
            await anext(pieces)
        return None

    pool_of: list[Served] = []

    async def work() -> None:
        async with served() as pool:
            pool_of.append(pool)
            pool.take = some
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(len(CONTENT)) + CONTENT)
            await answers(reader)
            writer.write(head(4) + b"next")
            await answers(reader)
            assert pool.bodies == [b"next"]
            writer.close()

    run(work())


def test_a_sender_who_stops_is_cut_off_also_when_his_body_is_not_wanted() -> None:
    async def one(body: UploadBody) -> None:
        await anext(body.pieces(0))

    async def work() -> None:
        async with served(body_deadline_s=0.5) as pool:
            for take in (None, one):
                pool.take = take
                reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
                writer.write(head(len(CONTENT)) + CONTENT[: 2 * LEAST_BYTES])
                assert (b" 200 " in await reader.read()) == (take is not None)
                writer.close()
            assert pool.bodies == [CONTENT[: 2 * LEAST_BYTES]]

    run(work())


def test_a_steady_sender_and_one_whom_we_keep_waiting_are_not_cut_off() -> None:
    async def slowly(body: UploadBody) -> None:
        await asyncio.sleep(2)
        await pool_of[0].take_all(body)

    pool_of: list[Served] = []

    async def work() -> None:
        async with served(body_deadline_s=0.5) as pool:
            pool_of.append(pool)
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(LEAST_BYTES + 20_000) + CONTENT[:LEAST_BYTES])
            for at in range(LEAST_BYTES, LEAST_BYTES + 20_000, 2_000):
                await asyncio.sleep(0.2)
                writer.write(CONTENT[at : at + 2_000])
            await answers(reader)
            pool.take = slowly
            writer.write(head(len(CONTENT)) + CONTENT)
            await answers(reader)
            assert pool.bodies == [CONTENT[: LEAST_BYTES + 20_000], CONTENT]
            writer.close()

    run(work())


def test_who_waits_to_be_told_to_go_on_is_told() -> None:
    async def work() -> None:
        async with served() as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            writer.write(head(len(CONTENT), "Expect: 100-continue"))
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(CONTENT)
            await answers(reader)
            assert pool.bodies == [CONTENT]
            writer.close()

    run(work())


def test_what_is_small_or_of_no_known_length_or_not_an_upload_comes_the_ordinary_way() -> None:
    frame = b"%x\r\n" % len(CONTENT) + CONTENT + b"\r\n0\r\n\r\n"

    async def work() -> None:
        async with served() as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
            for request, body in (
                (head(LEAST_BYTES - 1), CONTENT[: LEAST_BYTES - 1]),
                (head(None, "Transfer-Encoding: chunked"), frame),
                (head(len(CONTENT), method="PUT"), CONTENT),
            ):
                writer.write(request + body)
                await answers(reader)
            assert pool.bodies == [CONTENT[: LEAST_BYTES - 1], CONTENT, CONTENT]
            assert pool.taken == [False] * 3
            writer.close()

    run(work())


def _certificate(place: Path) -> tuple[dict[str, Path], ssl.SSLContext]:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = place / "chain.pem", place / "key.pem"
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(chain), append=True)
    issued.private_key_pem.write_to_path(str(key))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return {"tls_certificate": chain, "tls_key": key}, trusting
