"""The operator's token: whoever may read the pool's home is its operator.

Made once, whole and durable before it has its name, readable only by the owner of the home. A file that does not hold a
token is refused: an empty one would make everybody an operator.
"""

import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from tidemill.core.faults import Fault

NAME = "operator.token"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


def operator_token(home: Path) -> str:
    file = home / NAME
    if not file.exists():
        _make(file)
    token = file.read_text("utf-8", errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise Fault(f"{file} does not hold a token any more: remove it, and a new one is made at the next start.")
    return token


def _make(file: Path) -> None:
    descriptor, draft = tempfile.mkstemp(prefix=f".{NAME}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(secrets.token_urlsafe(32) + "\n")
            out.flush()
            os.fsync(out.fileno())
        with suppress(FileExistsError):  # another process was quicker; its token counts
            os.link(draft, file)
    finally:
        os.unlink(draft)
