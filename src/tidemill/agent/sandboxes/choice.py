"""Which sandbox a run gets: the first that can hold it to all that is demanded.

The order of those available is the machine's preference, the quicker one first. Where none will do, every reason is
kept, so that the pool and the owner learn what is missing on this machine.
"""

from collections.abc import Sequence

from tidemill.agent.sandboxes.interface import Sandbox
from tidemill.core.jobs.sandboxes import Ability, SandboxRefusal, unmet


def choose(available: Sequence[Sandbox], demands: frozenset[Ability], needs_image: bool) -> Sandbox | SandboxRefusal:
    """The first sandbox that enforces every demand; one that runs images where the task brings its own."""
    if not available:
        return SandboxRefusal.NO_SANDBOX
    fitting = [one for one in available if not needs_image or Ability.IMAGE in one.enforced.abilities]
    if not fitting:
        return SandboxRefusal.NO_IMAGES
    return next((one for one in fitting if demands <= one.enforced.abilities), SandboxRefusal.DEMANDS_UNMET)


def reasons(available: Sequence[Sandbox], demands: frozenset[Ability]) -> tuple[str, ...]:
    """What each sandbox lacks for these demands, a sentence each, none twice."""
    return tuple(dict.fromkeys(sentence for one in available for sentence in unmet(demands, one.enforced)))
