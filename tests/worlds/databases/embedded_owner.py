"""A process that owns an embedded server, to be killed.

Run as `python -m tests.worlds.databases.embedded_owner HOME`. It prints a line when the server is up.
"""

import sys
from pathlib import Path

import uvloop

from tidemill.store.embedded import EmbeddedServer


async def own(home: Path) -> None:
    server = EmbeddedServer(home)
    await server.start()
    sys.stdout.write("up\n")
    sys.stdout.flush()
    await server.watch()


if __name__ == "__main__":
    uvloop.run(own(Path(sys.argv[1])))
