"""The status file that a running agent writes for its owner's commands. It is always whole, and says its age."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemill.core.clock import SECOND, Instant
from tidemill.host.private_files import replace_private_file

_FILE_MAX = 1024 * 1024


@dataclass(frozen=True)
class LastStatus:
    """The last written status, and its age by the machine's own clock."""

    fields: Mapping[str, Any]
    age_s: float


def write_status(file: Path, fields: Mapping[str, object], now: Instant) -> None:
    replace_private_file(file, json.dumps({**fields, "written_us": now}, ensure_ascii=False) + "\n")


def read_status(file: Path, now: Instant) -> LastStatus | None:
    """The last status; None if no agent ever ran here, or the file is not ours."""
    try:
        with file.open("rb") as opened:
            fields = json.loads(opened.read(_FILE_MAX))
        written_us = fields.pop("written_us")
        return LastStatus(fields, max(0, now - written_us) / SECOND)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
