"""Runners: the code that carries out a kind of task on a node. How to add one: docs/how-to/add-a-runner.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.agent.runners.container import ContainerRunner
from tidemill.agent.runners.embed import EmbedRunner
from tidemill.agent.runners.interface import OUT, ResultFiles, Runner
from tidemill.agent.runners.matmul import MatmulRunner
from tidemill.agent.runners.render import RenderRunner
from tidemill.agent.runners.script import ScriptRunner
from tidemill.core.nodes.machine.hardware import Machine

__all__ = ["OUT", "RUNNERS", "AvailableKinds", "ResultFiles", "Runner", "available"]

_ALL: tuple[Runner, ...] = (MatmulRunner(), EmbedRunner(), ScriptRunner(), ContainerRunner(), RenderRunner())
RUNNERS: Mapping[str, Runner] = {runner.kind.name: runner for runner in _ALL}


@dataclass(frozen=True)
class AvailableKinds:
    """The kinds that a machine can carry out, and why it cannot carry out the others."""

    kinds: tuple[str, ...]
    why_not: Mapping[str, str]


def available(machine: Machine, runners: Mapping[str, Runner] = RUNNERS) -> AvailableKinds:
    """The kinds whose runners work on this machine. Whether its sandboxes fit is another question."""
    reasons = {name: runner.why_not(machine) for name, runner in runners.items()}
    why_not = {name: reason for name, reason in reasons.items() if reason is not None}
    return AvailableKinds(tuple(name for name in runners if name not in why_not), why_not)
