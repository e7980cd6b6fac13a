"""The operator's token: whoever may read the pool's home is its operator.

Made once, whole and durable before it has its name, readable only by the owner of the home. A file that does not hold a
token is refused: an empty one would make everybody an operator.
"""

import re
import secrets
from pathlib import Path

from tidemill.core.faults import Fault
from tidemill.host.private_files import make_private_file_once

NAME = "operator.token"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


def operator_token(home: Path) -> str:
    file = home / NAME
    if not file.exists():
        make_private_file_once(file, secrets.token_urlsafe(32) + "\n")
    token = file.read_text("utf-8", errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise Fault(f"{file} does not hold a token any more: remove it, and a new one is made at the next start.")
    return token
