"""Attempts as they lie on this machine's disk, so that an agent which was killed knows what it had promised.

Each has a directory of its own. What is in it says how far it came: the order; one byte for each time that it was
begun; a sealed result that is to be uploaded; and the receipt, which is written once, before anybody is told of it, and
never again. So an attempt has one receipt, however often the agent is killed. The order is the first to be removed:
a directory without one is nobody's.

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

_ORDER, _BEGUN, _RESULT, _RECEIPT, _DRAFT = "order", "begun", "result", "receipt", "draft"


class _Order(msgspec.Struct, frozen=True, array_like=True):
    offer: Assignment
    deadline_at: int


_decoder: msgspec.msgpack.Decoder[_Order] = msgspec.msgpack.Decoder(_Order)


@dataclass(frozen=True)
class AttemptDirectory:
    """One attempt's directory, and the order in it. `deadline_at` is by this machine's wall clock."""

    path: Path
    assignment: Assignment
    deadline_at: Instant

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.assignment.attempt_id)

    @property
    def name(self) -> str:
        """As directories, control groups and sandboxes know it."""
        return _name(self.assignment)

    @property
    def result(self) -> Path:
        """The sealed result that is to be uploaded, if there is one. It is whole once there is a receipt."""
        return self.path / _RESULT

    def begin(self) -> None:
        """Note that it is begun. No power cut is feared here: it only makes one more try."""
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
        """The receipt, if it is finished. One that cannot be read is none: then it is done again."""
        try:
            kept = read_receipt((self.path / _RECEIPT).read_bytes())
        except FileNotFoundError:
            return None
        return None if isinstance(kept, Refusal) else kept

    def disown(self) -> None:
        """Whatever happens from now on, it does not come back."""
        (self.path / _ORDER).unlink(missing_ok=True)

    def remove(self) -> None:
        """The pool has the receipt, or wants none."""
        self.disown()
        shutil.rmtree(self.path, ignore_errors=True)


class AttemptDirectories:
    """The directory of all attempts."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def take(self, offer: Assignment, deadline_at: Instant) -> AttemptDirectory:
        """Keep an order, durably: after this it may be accepted."""
        attempt = AttemptDirectory(self._place / _name(offer), offer, deadline_at)
        try:
            shutil.rmtree(attempt.path, ignore_errors=True)
            attempt.path.mkdir(mode=0o700, parents=True)
            _write_durably(attempt.path, _ORDER, msgspec.msgpack.encode(_Order(offer, deadline_at)))
            sync_directory(self._place)
        except OSError as error:
            shutil.rmtree(attempt.path, ignore_errors=True)
            raise AgentFault(
                f"An attempt cannot be kept in {self._place} ({error.strerror}): make room there."
            ) from None
        return attempt

    def kept(self) -> list[AttemptDirectory]:
        """Every attempt that is here, oldest first. What is nobody's is removed."""
        self._place.mkdir(mode=0o700, exist_ok=True)
        found = []
        for place in sorted(self._place.iterdir(), key=lambda place: (place.name.partition("-")[0], place.name)):
            attempt = _read(place)
            if attempt is None:
                log.warning("attempt not readable", place=place.name)
                shutil.rmtree(place, ignore_errors=True)
            else:
                found.append(attempt)
        return found


def _name(offer: Assignment) -> str:
    return f"{offer.attempt_id.hex()}-{offer.lease}"


def _read(place: Path) -> AttemptDirectory | None:
    try:
        order = _decoder.decode((place / _ORDER).read_bytes())
    except (OSError, *UNREADABLE):
        return None
    return (
        AttemptDirectory(place, order.offer, Instant(order.deadline_at)) if place.name == _name(order.offer) else None
    )


def _write_durably(place: Path, name: str, content: bytes) -> None:
    """A file that is whole once it has its name."""
    draft = place / _DRAFT
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(place / name)
    sync_directory(place)
