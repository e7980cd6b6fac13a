"""The owner's rules on this machine: a file that commands change while an agent runs, and that the agent merges into.

Every change is made under a lock, so none is lost. A file that cannot be read is never overwritten: the owner's rules
may be in it.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tidemill.core.clock import Instant
from tidemill.core.faults import AgentFault
from tidemill.core.nodes.rules.rule_book import BOOK_BYTES_MAX, RuleBook, RuleOrigin, change, from_json, merge, to_json
from tidemill.core.refusals import Refusal
from tidemill.host.locks import lock_now
from tidemill.host.private_files import replace_private_file

_WAIT_S = 5.0
_POLL_S = 0.01

Stamp: TypeAlias = tuple[int, int, int]


class RulesFile:
    """The rules file, and the lock file beside it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def stamp(self) -> Stamp | None:
        """A value that differs after every change; None if there is no file."""
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def read(self) -> RuleBook:
        try:
            with open(os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
                book = from_json(opened.read(BOOK_BYTES_MAX + 1))
        except FileNotFoundError:
            return RuleBook()
        except OSError as error:
            raise AgentFault(f"{self._file} cannot be read ({error.strerror}): run this as the agent's user.") from None
        if isinstance(book, Refusal):
            raise AgentFault(f"{self._file} is damaged ({book.sentence}) Remove it, and set your rules again.")
        return book

    def change(self, wishes: Mapping[str, object], *, by: str, now: Instant) -> RuleBook | Refusal:
        """Set rules here, all of them or none."""
        return self._change_locked(lambda book: change(book, wishes, by=by, place=RuleOrigin.NODE, now=now))

    def merge(self, other: RuleBook) -> RuleBook:
        """Take over every rule that is newer in the other book. Returns the merged book."""
        merged = self._change_locked(lambda book: merge(book, other))
        assert isinstance(merged, RuleBook)
        return merged

    def _change_locked(self, decide: Callable[[RuleBook], RuleBook | Refusal]) -> RuleBook | Refusal:
        with self._locked():
            before = self.read()
            after = decide(before)
            if isinstance(after, RuleBook) and after != before:
                try:
                    replace_private_file(self._file, to_json(after).decode() + "\n")
                except OSError as error:
                    raise AgentFault(
                        f"{self._file} cannot be written ({error.strerror}): look at the disk and who may write there."
                    ) from None
        return after

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self._file.with_suffix(".lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise AgentFault(f"{lock} cannot be used ({error.strerror}): run this as the agent's user.") from None
        try:
            _take(descriptor, lock)
            yield
        finally:
            os.close(descriptor)


def _take(descriptor: int, lock: Path) -> None:
    """Take the lock. Others hold it only for a moment; one that was stopped meanwhile must not stop us for good."""
    deadline = time.monotonic() + _WAIT_S
    while not lock_now(descriptor):
        if time.monotonic() > deadline:
            raise AgentFault(f"Another command holds {lock}: end it, and try again.")
        time.sleep(_POLL_S)
