"""Nodes, as a control process runs them."""

import secrets
from random import SystemRandom

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.nodes import join_token_routes, routes, telemetry_routes
from tidemill.control.nodes.challenge_loop import ChallengeLoop
from tidemill.control.nodes.loops import NodeAlertDuty, NodeHealthLoop, TelemetryDuty
from tidemill.control.nodes.node_instruction_loop import NodeInstructionLoop
from tidemill.control.nodes.node_registry import LinkRefusalLoop


def _loops(control: Control) -> list[Loop]:
    return [
        LinkRefusalLoop(control, control.link_refusals),
        NodeInstructionLoop(control, control.links),
        ChallengeLoop(control, secrets.token_bytes, SystemRandom()),
        NodeHealthLoop(control),
        NodeAlertDuty(control),
        TelemetryDuty(control),
    ]


AREA = Area(
    routers=(
        join_token_routes.router,
        routes.router,
        telemetry_routes.router,
    ),
    loops=_loops,
)
