"""A process that uploads so many MiB to a server in another one, and prints by how much its memory grew at the most.

`python -m tests.worlds.agents.large_upload DIRECTORY MIB`: halfway the server hangs up.
"""

import asyncio
import multiprocessing
import random
import resource
import ssl
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import UUID, uuid4

from tests.worlds.agents.artefact_server import artefact_server
from tidemill.agent.artefacts.transfers import Transfers
from tidemill.core.artefacts.artefact import Digest, Purpose

MIB = 1024 * 1024


def serve(answer: Connection, half_bytes: int) -> None:
    async def until_killed() -> None:
        async with artefact_server() as server:
            server.hang_up_after = [half_bytes]
            server.checks = False
            answer.send(server.url)
            await asyncio.Event().wait()

    asyncio.run(until_killed())


async def main(place: Path, size_mib: int, url: str) -> int:
    file = place / "result"
    with file.open("wb") as out:
        out.truncate(size_mib * MIB)
    trust = ssl.create_default_context()
    transfers = Transfers(lambda: (url,), trust, lambda until: f"until-{until}", place / "notes", random.Random(1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await transfers.upload(file, Purpose.RESULT, uuid4(), Digest("0" * 64))
    assert isinstance(answer, UUID)
    await transfers.close()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    mib = int(sys.argv[2])
    server = multiprocessing.Process(target=serve, args=(theirs, mib * MIB // 2), daemon=True)
    server.start()
    sys.stdout.write(str(asyncio.run(main(Path(sys.argv[1]), mib, ours.recv()))))
    server.kill()
