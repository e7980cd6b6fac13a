"""Artefacts in a directory of this machine, for what runs work without a pool that has any."""

import hashlib
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.faults import ArtefactFault
from tidemill.core.refusals import Refusal


class ShelfOfArtefacts:
    """Files under their digests. It gives what is there, and takes what it is brought, unless it is told not to."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.unreachable = 0
        self.refusal: Refusal | None = None
        place.mkdir(exist_ok=True)

    def put(self, content: bytes) -> Digest:
        digest = Digest(hashlib.sha256(content).hexdigest())
        (self.place / digest.text).write_bytes(content)
        return digest

    @asynccontextmanager
    async def use(self, digest: Digest, size_bytes: int) -> AsyncIterator[Path]:
        path = self.place / digest.text
        if not path.exists() or path.stat().st_size != size_bytes:
            raise ArtefactFault("The pool does not have this artefact.")
        yield path

    async def upload(self, path: Path, purpose: Purpose, attempt_id: UUID, digest: Digest) -> UUID | Refusal:
        if self.unreachable:
            self.unreachable -= 1
            raise ArtefactFault("The pool cannot be reached.")
        if self.refusal is not None:
            return self.refusal
        shutil.copyfile(path, self.place / digest.text)
        return uuid4()
