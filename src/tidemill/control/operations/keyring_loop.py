"""The keyring follows what other processes and `tidemill keys rotate` do to the pool's data keys."""

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant

REFRESH_S = 5.0
"""How often a process looks for new data keys; a rotation waits for that before it deletes old ones."""


class KeyringLoop(Loop):
    """Loads new data keys, so that this process seals with the newest."""

    name = "keyring"
    needs_trusted_clock = False

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=REFRESH_S)

    async def tick(self, now: Instant) -> Tick:
        await self.parts.keyring.refresh()
        return Tick(seen=1)
