"""The file of published tips in a pool's home: outside the database, so that it shows when the database was cut.

One line a tip, only ever appended. A line that a full disk or a crash has torn stays, and does not count.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from tidemill.core.events.trail import TrailTip
from tidemill.core.events.trail_lines import tip_line, tip_of
from tidemill.core.faults import Fault

NAME = "audit-heads.txt"
_LINE_MOST = 200


def add_tip(home: Path, tip: TrailTip) -> bool:
    """Append a tip unless it is the last one there. Returns whether it was appended."""
    file, line = home / NAME, tip_line(tip)
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            end = _end(descriptor)
            if end.endswith(f"{line}\n"):
                return False
            torn = bool(end) and not end.endswith("\n")
            os.write(descriptor, ("\n" * torn + line + "\n").encode())
            os.fsync(descriptor)
            return True
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Fault(f"The tip of the audit trail cannot be written to {file}: {error.strerror or error}.") from error


def read_tips(lines: Iterable[str]) -> tuple[list[TrailTip], int]:
    """The tips, and how many lines contain none."""
    parsed = [tip_of(line) for line in lines if line.strip()]
    tips = [tip for tip in parsed if tip is not None]
    return tips, len(parsed) - len(tips)


def _end(descriptor: int) -> str:
    size_bytes = os.fstat(descriptor).st_size
    return os.pread(descriptor, _LINE_MOST, max(0, size_bytes - _LINE_MOST)).decode("ascii", errors="replace")
