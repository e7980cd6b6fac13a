"""An agent that is killed: it runs in a home that has joined, and reports receipts without end.

Each line on standard output is a receipt that was promised to be kept.
"""

import asyncio
import itertools
import os
import sys
from pathlib import Path

import structlog

from tests.worlds.agents.spool_reports import receipt
from tidemill.agent.agent import Agent
from tidemill.agent.home.home import Home
from tidemill.agent.startup import equipped, member_of
from tidemill.core.settings import Settings


def begin(home: Path, first: int) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_run(Home(home), first))


async def _run(home: Home, first: int) -> None:
    async with equipped(home, Settings(home=home.path)) as equipment:

        async def report(mark: int) -> None:
            if await equipment.reporting.report(receipt(mark)):
                os.write(1, f"{mark}\n".encode())

        async def work() -> None:
            for mark in itertools.count(first):
                await report(mark)
                await asyncio.sleep(0.002)

        working = asyncio.create_task(work())
        await Agent(equipment, member_of(home)).run()
        working.cancel()
