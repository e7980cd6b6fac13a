"""A verifying loop for tests: with real processes for checks, and with patience for them."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.worlds.databases.dispatch_world import VERIFICATION
from tidemill.artefacts.store import ArtefactStore
from tidemill.control.parts import Parts
from tidemill.control.trust.check_processes import CheckProcesses
from tidemill.control.trust.result_judge import ResultJudge
from tidemill.control.trust.stored_results import StoredResults
from tidemill.control.trust.verifying_loop import VerifyingLoop

PATIENCE_S = 60.0
"""A tick of a test ends when all is decided: a busy machine takes its time to start a process."""


@asynccontextmanager
async def verifying(
    parts: Parts, artefacts: ArtefactStore, patience_s: float = PATIENCE_S
) -> AsyncIterator[VerifyingLoop]:
    checks = CheckProcesses(parts.settings.verification)
    judge = ResultJudge(StoredResults(artefacts, VERIFICATION), checks, secrets.token_bytes, Path(parts.settings.home))
    loop = VerifyingLoop(parts, judge, patience_s)
    try:
        yield loop
    finally:
        await loop.close()
        checks.close()
