"""Opens and closes the workshop: every sandbox that works on this machine, the quicker one first.

A sandbox that does not work stops no agent: the agent keeps its link, and says why it takes no such work.
"""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import structlog

from tidemill.agent.home.home import Home
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.engine.sandbox import SOCKETS, open_engine
from tidemill.agent.sandboxes.interface import Sandbox
from tidemill.agent.work.workshop import Workshop
from tidemill.core.faults import Fault

log = structlog.get_logger()


@asynccontextmanager
async def open_workshop(home: Home) -> AsyncIterator[Workshop]:
    """Open every sandbox. Each removes what a killed agent left where its tasks run."""
    sandboxes: list[Sandbox] = []
    faults: list[str] = []
    engine = next((socket for socket in SOCKETS if socket.is_socket()), None)
    openings: list[Awaitable[Sandbox]] = [open_bubblewrap(home.runs)]
    openings += [open_engine(home.images, engine)] if engine else []
    for opening in openings:
        try:
            sandboxes.append(await opening)
        except Fault as fault:
            log.warning("sandbox not usable", cause=str(fault))
            faults.append(str(fault))
        except OSError as error:
            faults.append(f"Tasks cannot be run beside {home.path} ({error.strerror}): look at who may write there.")
    try:
        yield Workshop(home.path, tuple(sandboxes), tuple(faults))
    finally:
        for sandbox in sandboxes:
            sandbox.close()
