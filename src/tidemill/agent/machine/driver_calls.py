"""Calls to drivers, which may fail and may hang.

A hanging call cannot be ended. It keeps a thread of its own, and its caller stops waiting after a deadline. While it
hangs, that driver gets no other call, so that threads do not pile up. The threads do not keep a process from ending.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tidemill.core.faults import Fault
from tidemill.core.nodes.machine.hardware import WORDS_MAX

T = TypeVar("T")


class NotAnswering(Fault):
    """A driver or a disk does not answer."""

    code = "hardware_not_answering"


class DriverThread:
    """Asks one driver one question at a time, outside the event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pending: asyncio.Future[Any] | None = None

    async def ask(self, question: Callable[[], T], within_s: float) -> T:
        """The answer, or the question's exception; NotAnswering if there is no answer in time."""
        deadline = asyncio.timeout(within_s)
        try:
            async with deadline:
                while self._pending is not None:
                    await asyncio.wait([self._pending])
                return await asyncio.shield(self._begin(question))
        except TimeoutError:
            if not deadline.expired():
                raise
            sentence = f"{self._name} has not answered for {within_s:g} s; if it stays so, restart the machine."
            raise NotAnswering(sentence) from None

    def _begin(self, question: Callable[[], T]) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(self._note_answer)
        self._pending = answer
        threading.Thread(target=_run, args=(question, answer), name=self._name, daemon=True).start()
        return answer

    def _note_answer(self, answer: asyncio.Future[Any]) -> None:
        self._pending = None
        if not answer.cancelled():
            answer.exception()  # mark it as retrieved, since nobody may wait for it any more


class DeviceReader:
    """Reads a device value by value, and keeps the driver's words about the first failure.

    After that it asks the device nothing else: a lost device answers every question slowly.
    """

    def __init__(self, failures: tuple[type[Exception], ...], is_shrug: Callable[[Exception], bool]) -> None:
        self.failing: str | None = None
        self._failures = failures
        self._is_shrug = is_shrug

    def must(self, otherwise: Any, question: Callable[..., Any], *about: Any) -> Any:
        """A value that every working device has."""
        return self._read(otherwise, question, about, may_shrug=False)

    def may(self, otherwise: Any, question: Callable[..., Any], *about: Any) -> Any:
        """A value that some devices or drivers do not have."""
        return self._read(otherwise, question, about, may_shrug=True)

    def _read(self, otherwise: Any, question: Callable[..., Any], about: tuple[Any, ...], *, may_shrug: bool) -> Any:
        if self.failing is not None:
            return otherwise
        try:
            return question(*about)
        except self._failures as error:
            if not (may_shrug and self._is_shrug(error)):
                self.failing = complaint(error)
            return otherwise


def complaint(error: Exception) -> str:
    """The driver's words about a failure, or its type if it has none."""
    return words(str(error)) or type(error).__name__


def words(text: str) -> str:
    """A driver's text, made safe to keep and show: on one line, printable, and not too long."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[:WORDS_MAX]


def within(low: int, value: float, high: int) -> int:
    """A driver's value as a whole number, kept between two bounds."""
    return round(min(max(value, low), high))


def _run(question: Callable[[], T], answer: asyncio.Future[T]) -> None:
    try:
        result = question()
    except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
        _settle(answer, partial(answer.set_exception, error))
    else:
        _settle(answer, partial(answer.set_result, result))


def _settle(answer: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    try:
        answer.get_loop().call_soon_threadsafe(lambda: None if answer.done() else settle())
    except RuntimeError:
        return  # the loop is closed: nobody listens any more
