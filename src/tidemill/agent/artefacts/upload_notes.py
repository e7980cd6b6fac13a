"""Notes on where this machine's uploads are in the pool, so that a restarted agent resumes them.

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

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, attempt_id: UUID, digest: Digest) -> str | None:
        """The upload's path at the pool, if these bytes were being uploaded."""
        try:
            noted = json.loads(self._file(attempt_id).read_bytes()[:_NOTE_MAX])
            return str(noted["location"]) if noted["digest"] == digest.text else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, attempt_id: UUID, digest: Digest, location: str) -> None:
        with suppress(OSError):  # a full disk must not keep a result from the pool
            self._directory.mkdir(mode=0o700, exist_ok=True)
            replace_private_file(self._file(attempt_id), json.dumps({"digest": digest.text, "location": location}))

    def forget(self, attempt_id: UUID) -> None:
        with suppress(OSError):
            self._file(attempt_id).unlink(missing_ok=True)

    def _file(self, attempt_id: UUID) -> Path:
        return self._directory / f"{attempt_id}.json"
