"""Everything that wakes a loop before its period is over.

Events wake loops: each loop names the kinds in its `wakes_on`, and one dispatcher looks through what the feed reads.
The feed itself is woken in two steps: a commit here wakes the announcer, and an announcement of any process wakes the
feed. A wake-up may be lost, since every loop also ticks by itself.

One thing does not wait for its event: what this process places goes to the assignment loop with the commit, see
`control/placement/area.py`.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

from tidemill.control.context import Control
from tidemill.control.events.feed import EventFeed
from tidemill.control.loops.frame import Loop, LoopRunner
from tidemill.control.operations.housekeeping import AnnounceLoop
from tidemill.core.events.log import RecordedEvent
from tidemill.store.events import events
from tidemill.store.operations import processes


class EventDispatcher:
    """Tells loops of the events that they name in `wakes_on`, in one pass over each batch."""

    def __init__(self, runners: Iterable[LoopRunner]) -> None:
        self._concerned: dict[str, list[LoopRunner]] = defaultdict(list)
        for runner in runners:
            for event in runner.loop.wakes_on:
                self._concerned[event.kind].append(runner)

    def dispatch(self, batch: Iterable[RecordedEvent]) -> None:
        recorded: dict[LoopRunner, list[RecordedEvent]] = defaultdict(list)
        for event in batch:
            for runner in self._concerned.get(event.kind, ()):
                recorded[runner].append(event)
        for runner, its_events in recorded.items():
            runner.hear(its_events)


@asynccontextmanager
async def wake_ups(control: Control) -> AsyncIterator[None]:
    """While this runs, commits and announcements wake the loops of a process that they concern."""
    announcer, feed = _runner(control, AnnounceLoop), _runner(control, EventFeed)
    dispatcher = EventDispatcher(control.runners)

    def committed(accounts: Sequence[UUID]) -> None:
        assert isinstance(announcer.loop, AnnounceLoop)
        control.callers.forget(accounts)
        announcer.loop.appended()
        announcer.wake()

    def arrived(batch: Sequence[RecordedEvent]) -> None:
        control.callers.forget(account for event in batch for account in event.accounts)
        dispatcher.dispatch(batch)

    control.feed.on_events = arrived
    control.loop_database.on_appended = control.route_database.on_appended = committed
    show_life = partial(processes.show_life, process_id=control.process_id)
    retry_s = control.settings.loops.poll_s
    listening = asyncio.create_task(events.listen(control.loop_database, show_life, feed.wake, retry_s))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def _runner(control: Control, kind: type[Loop]) -> LoopRunner:
    [runner] = [runner for runner in control.runners if isinstance(runner.loop, kind)]
    return runner
