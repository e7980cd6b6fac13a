"""A person at a terminal: a command on a pseudo-terminal of its own, what it shows, and what is typed."""

import os
import pty
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.worlds.pools.pool import TIDEMILL

_PATIENCE_S = 30.0


@dataclass
class Terminal:
    """A command at work. `shown` is all that was on the screen so far."""

    process_id: int
    controller: int
    shown: str = ""
    _read_to: int = field(default=0)

    def answer(self, question: str, typed: str) -> None:
        """Wait for a question that was not answered yet, and type."""
        deadline = time.monotonic() + _PATIENCE_S
        while question not in self.shown[self._read_to :]:
            assert time.monotonic() < deadline, f"nobody asked {question!r}: {self.shown}"
            assert self.read(), f"it ended before it asked {question!r}: {self.shown}"
        self._read_to = len(self.shown)
        # A password is asked for in two steps, the question and then the silence: what is typed between is dropped.
        time.sleep(0.2)
        os.write(self.controller, f"{typed}\n".encode())

    def end(self) -> int:
        """Read to the end and answer the exit code."""
        while self.read():
            pass
        os.close(self.controller)
        _, status = os.waitpid(self.process_id, 0)
        return os.waitstatus_to_exitcode(status)

    def read(self) -> bool:
        """Read on; False at the end."""
        ready, _, _ = select.select([self.controller], [], [], _PATIENCE_S)
        assert ready, f"silence: {self.shown}"
        try:
            chunk = os.read(self.controller, 4096)
        except OSError:
            return False
        self.shown += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)


def at_terminal(environment: Mapping[str, str], *arguments: str) -> Terminal:
    process_id, controller = pty.fork()
    if process_id == 0:
        os.execve(TIDEMILL, [str(TIDEMILL), *arguments], dict(environment))
    return Terminal(process_id, controller)
