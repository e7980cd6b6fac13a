"""Verification, as a control process runs it."""

import secrets

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.trust import routes
from tidemill.control.trust.result_judge import ResultJudge
from tidemill.control.trust.stored_results import StoredResults
from tidemill.control.trust.verifying_loop import VerifyingLoop


def _loops(control: Control) -> list[Loop]:
    results = StoredResults(control.artefacts, control.verification)
    return [
        VerifyingLoop(control, ResultJudge(results, control.checks, secrets.token_bytes, control.settings.home)),
    ]


AREA = Area(routers=(routes.router,), loops=_loops)
