"""Attempts on this machine's disk, so that an agent which was killed knows what it had promised.

Each has a directory of its own, whose files say how far it came: the assignment; one byte for each time it was begun;
a sealed result to upload; and the receipt, which is written once, before anybody is told of it, and never again. So an
attempt has one receipt, however often the agent is killed. The assignment is removed first: a directory without one
belongs to nobody.

All functions wait for the disk: call them in a thread.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import msgspec
import structlog

from tidemill.core.clock import Instant
from tidemill.core.faults import AgentFault
from tidemill.core.jobs.receipts import Receipt, read_receipt, receipt_bytes
from tidemill.core.refusals import Refusal
from tidemill.host.private_files import sync_directory
from tidemill.wire.messages import UNREADABLE, Assignment

log = structlog.get_logger()

_ASSIGNMENT, _BEGUN, _RESULT, _RECEIPT, _DRAFT = "order", "begun", "result", "receipt", "draft"


class _KeptAssignment(msgspec.Struct, frozen=True, array_like=True):
    assignment: Assignment
    deadline_at: int


_decoder: msgspec.msgpack.Decoder[_KeptAssignment] = msgspec.msgpack.Decoder(_KeptAssignment)


@dataclass(frozen=True)
class AttemptDirectory:
    """One attempt's directory, and the assignment in it. `deadline_at` is by this machine's wall clock."""

    path: Path
    assignment: Assignment
    deadline_at: Instant

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.assignment.attempt_id)

    @property
    def name(self) -> str:
        """Its name for directories, control groups and sandboxes."""
        return _name(self.assignment)

    @property
    def result(self) -> Path:
        """The sealed result to upload, if there is one. It is whole once there is a receipt."""
        return self.path / _RESULT

    def begin(self) -> None:
        """Note that it is begun. This need not survive a power cut, which would only allow one more try."""
        with (self.path / _BEGUN).open("ab") as begun:
            begun.write(b".")

    def begun(self) -> int:
        """How often it was begun."""
        try:
            return (self.path / _BEGUN).stat().st_size
        except FileNotFoundError:
            return 0

    def keep(self, receipt: Receipt) -> None:
        """Write the receipt, durably."""
        _write_durably(self.path, _RECEIPT, receipt_bytes(receipt))

    def receipt(self) -> Receipt | None:
        """The receipt, if the attempt is finished. An unreadable one counts as none, and the attempt is run again."""
        try:
            receipt = read_receipt((self.path / _RECEIPT).read_bytes())
        except FileNotFoundError:
            return None
        return None if isinstance(receipt, Refusal) else receipt

    def disown(self) -> None:
        """Remove the assignment: whatever happens from now on, the attempt does not come back."""
        (self.path / _ASSIGNMENT).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything: the pool has the receipt, or wants none."""
        self.disown()
        shutil.rmtree(self.path, ignore_errors=True)


class AttemptDirectories:
    """The directory of all attempts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, assignment: Assignment, deadline_at: Instant) -> AttemptDirectory:
        """Keep an assignment durably: after this it may be accepted."""
        attempt = AttemptDirectory(self._path / _name(assignment), assignment, deadline_at)
        try:
            shutil.rmtree(attempt.path, ignore_errors=True)
            attempt.path.mkdir(mode=0o700, parents=True)
            _write_durably(attempt.path, _ASSIGNMENT, msgspec.msgpack.encode(_KeptAssignment(assignment, deadline_at)))
            sync_directory(self._path)
        except OSError as error:
            shutil.rmtree(attempt.path, ignore_errors=True)
            raise AgentFault(
                f"An attempt cannot be kept in {self._path} ({error.strerror}): make room there."
            ) from None
        return attempt

    def kept(self) -> list[AttemptDirectory]:
        """Every attempt that is here, oldest first. Unreadable directories are removed."""
        self._path.mkdir(mode=0o700, exist_ok=True)
        attempts = []
        for path in sorted(self._path.iterdir(), key=lambda path: (path.name.partition("-")[0], path.name)):
            attempt = _read(path)
            if attempt is None:
                log.warning("attempt not readable", place=path.name)
                shutil.rmtree(path, ignore_errors=True)
            else:
                attempts.append(attempt)
        return attempts


def _name(assignment: Assignment) -> str:
    return f"{assignment.attempt_id.hex()}-{assignment.lease}"


def _read(path: Path) -> AttemptDirectory | None:
    try:
        kept = _decoder.decode((path / _ASSIGNMENT).read_bytes())
    except (OSError, *UNREADABLE):
        return None
    return (
        AttemptDirectory(path, kept.assignment, Instant(kept.deadline_at))
        if path.name == _name(kept.assignment)
        else None
    )


def _write_durably(directory: Path, name: str, content: bytes) -> None:
    """Write a file that is whole once it has its name."""
    draft = directory / _DRAFT
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(directory / name)
    sync_directory(directory)
