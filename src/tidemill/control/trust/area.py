"""Verification, as a control process runs it."""

import secrets

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.trust.stored_results import StoredResults
from tidemill.control.trust.verifying_loop import VerifyingLoop


def _loops(control: Control) -> list[Loop]:
    return [
        VerifyingLoop(control, StoredResults(control.artefacts, control.verification), secrets.token_bytes),
    ]


AREA = Area(loops=_loops)
