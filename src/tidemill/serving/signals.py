"""Signals that end a server, as calls."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """SIGTERM, Ctrl-C and a closed terminal call `stop`, each time they come. What nohup ignores stays ignored."""
    loop = asyncio.get_running_loop()
    numbers = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
