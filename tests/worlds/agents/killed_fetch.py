"""A fetch that is killed in the middle, and another process that goes on. Prints what was sent, and what had come.

`python -m tests.worlds.agents.killed_fetch DIRECTORY`.
"""

import asyncio
import multiprocessing
import random
import ssl
import sys
from hashlib import sha256
from pathlib import Path

from tests.worlds.agents.artefact_server import artefact_server
from tidemill.agent.artefacts.cache import Cache
from tidemill.agent.artefacts.transfers import Transfers
from tidemill.core.artefacts.artefact import Digest

CONTENT = random.Random(1).randbytes(20_000_000)
DIGEST = Digest(sha256(CONTENT).hexdigest())


def fetch(place: str, url: str) -> None:
    async def once() -> None:
        trust = ssl.create_default_context()
        notes = Path(place) / "notes"
        transfers = Transfers(lambda: (url,), trust, lambda until: f"until-{until}", notes, random.Random(1))
        cache = await Cache.open(Path(place) / "cache", 10**9, transfers, 0)
        async with cache.use(DIGEST, len(CONTENT)) as path:
            assert path.read_bytes() == CONTENT
        await transfers.close()

    asyncio.run(once())


async def main(place: str) -> tuple[int, int]:
    async with artefact_server() as server:
        server.contents[DIGEST.text] = CONTENT
        server.piece_pause_s = 0.002
        first = multiprocessing.get_context("spawn").Process(target=fetch, args=(place, server.url))
        first.start()
        while server.sent_bytes < len(CONTENT) // 2:
            await asyncio.sleep(0.005)
        first.kill()
        await asyncio.to_thread(first.join)
        came = (Path(place) / "cache" / "parts" / DIGEST.text).stat().st_size
        second = multiprocessing.get_context("spawn").Process(target=fetch, args=(place, server.url))
        second.start()
        await asyncio.to_thread(second.join)
        assert second.exitcode == 0
        return server.sent_bytes, came


if __name__ == "__main__":
    sys.stdout.write(" ".join(map(str, asyncio.run(main(sys.argv[1])))))
