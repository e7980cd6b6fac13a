"""Where the uploads of this machine are in the pool, so that a restarted agent goes on with them.

A note that is lost or damaged costs an upload from the start, and nothing else.
"""

import json
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.host.private_files import replace_private_file

_NOTE_MAX = 4096


class UploadNotes:
    """One small file for each attempt whose result is on its way."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def read(self, attempt_id: UUID, digest: Digest) -> str | None:
        """The path of the upload at the pool, if there is one of these bytes."""
        try:
            noted = json.loads(self._file(attempt_id).read_bytes()[:_NOTE_MAX])
            return str(noted["location"]) if noted["digest"] == digest.text else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, attempt_id: UUID, digest: Digest, location: str) -> None:
        with suppress(OSError):  # a full disk must not keep a result from the pool
            self._place.mkdir(mode=0o700, exist_ok=True)
            replace_private_file(self._file(attempt_id), json.dumps({"digest": digest.text, "location": location}))

    def forget(self, attempt_id: UUID) -> None:
        with suppress(OSError):
            self._file(attempt_id).unlink(missing_ok=True)

    def _file(self, attempt_id: UUID) -> Path:
        return self._place / f"{attempt_id}.json"
