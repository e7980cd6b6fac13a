"""Which sandbox a run gets: the first that enforces every demand.

Sandboxes come in the machine's order of preference, the quicker one first. Where none fits, every reason is kept, so
that the pool and the owner learn what is missing on this machine.
"""

from collections.abc import Sequence

from tidemill.agent.sandboxes.interface import Sandbox
from tidemill.core.jobs.sandboxes import Ability, SandboxRefusal, unmet


def choose(available: Sequence[Sandbox], demands: frozenset[Ability], needs_image: bool) -> Sandbox | SandboxRefusal:
    """The first sandbox that enforces every demand; one that runs images where the task brings its own."""
    if not available:
        return SandboxRefusal.NO_SANDBOX
    fitting = [sandbox for sandbox in available if not needs_image or Ability.IMAGE in sandbox.enforced.abilities]
    if not fitting:
        return SandboxRefusal.NO_IMAGES
    return next((sandbox for sandbox in fitting if demands <= sandbox.enforced.abilities), SandboxRefusal.DEMANDS_UNMET)


def reasons(available: Sequence[Sandbox], demands: frozenset[Ability]) -> tuple[str, ...]:
    """What each sandbox lacks for these demands, a sentence each, none twice."""
    return tuple(dict.fromkeys(sentence for sandbox in available for sentence in unmet(demands, sandbox.enforced)))
