"""A control process from its first connection to its last: migrate, register, serve, drain, say goodbye.

Any number of them may run on one database. The first SIGTERM (or Ctrl-C) drains: no new connections, requests and
ticks in hand are finished, streams are ended. The second leaves at once.
"""

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import SystemRandom

import structlog
from starlette.types import ASGIApp

from tidemill import __version__
from tidemill.control.app import create_app
from tidemill.control.areas import AREAS
from tidemill.control.assembly import make_control
from tidemill.control.context import BackupTarget, Control
from tidemill.control.loops.frame import LoopRunner
from tidemill.control.loops.wake_ups import wake_ups
from tidemill.control.metrics import DoorMetrics, Metrics
from tidemill.control.operations.first_steps import FirstStep, first_steps
from tidemill.control.operations.master_key import open_keyring
from tidemill.control.parts import Parts
from tidemill.core.clock import SECOND, ClockRules
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.settings import Settings, pool_fingerprint
from tidemill.serving.http_server import HttpServer, create_server
from tidemill.serving.tracing import traced
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import DatabaseClock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.ledger.poster import Poster
from tidemill.store.migrate import migrate
from tidemill.store.operations import processes
from tidemill.store.operations.critical_settings import in_force
from tidemill.store.operations.processes import Process

log = structlog.get_logger()

_COLLECTED_AFTER = (100_000, 50, 100)
_FAREWELL_S = 3.0
_LAST_TICK_S = 5.0
"""How long a tick in hand may take when we stop; longer work, such as a backup, is cancelled and done again."""


class ControlProcess:
    """One control process. `run` returns when it has been told to stop and has drained."""

    def __init__(
        self,
        settings: Settings,
        urls: DatabaseUrls,
        *,
        backups: Path | None,
        started_by: str,
        first_step: FirstStep = FirstStep.NOTHING,
    ) -> None:
        self._settings = settings
        self._urls = urls
        self._backups = backups
        self._started_by = started_by
        self._first_step = first_step
        self._ids = Ids(secrets.randbits)
        self._server: HttpServer | None = None
        self._control: Control | None = None
        self._told_to_stop = 0
        self._bug: BaseException | None = None
        self._starting: asyncio.Task[object] | None = None

    async def run(self, listener: socket.socket, on_ready: Callable[[Mapping[str, str]], None]) -> None:
        self._starting = asyncio.current_task()
        async with AsyncExitStack() as stack:
            await migrate(self._urls, self._ids, __version__)
            await self._take_settings_in_force()
            control = self._control = await stack.enter_async_context(self._open_parts())
            greeting = await first_steps(control, self._first_step)
            app, flush = traced(create_app(control), self._settings.tracing)
            stack.callback(flush)
            await stack.enter_async_context(self._running_loops(control))
            await self._serve(app, listener, lambda: on_ready(greeting))
            log.info("stopping", process_id=str(control.process_id))
        if self._bug:
            raise self._bug

    async def _take_settings_in_force(self) -> None:
        """Changes of critical settings wait; until they are ripe we use the values that the pool has accepted."""
        effective = await in_force(self._urls.owner, self._settings, self._started_by, self._ids)
        self._settings = effective.settings
        for change in effective.waiting:
            log.warning("critical setting waits", setting=change.name, wanted=change.value, state=change.state.value)

    def stop(self) -> None:
        """First call: announce that we stop, then drain. Second call, or before anything is served: stop at once."""
        self._told_to_stop += 1
        if self._server is None and self._starting:
            self._starting.cancel()
            return
        if self._control:
            self._control.draining.set()
        delay_s = self._settings.http.drain_delay_s if self._told_to_stop == 1 else 0
        asyncio.get_running_loop().call_later(delay_s, self._close)

    def _close(self) -> None:
        """Take no more connections; uvicorn then finishes open requests, unless `stop` was called twice."""
        if self._server:
            self._server.should_exit = True
            self._server.force_exit = self._told_to_stop > 1

    async def _serve(self, app: ASGIApp, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        assert self._control, "what is served is open"
        _collect_seldom()
        self._server = create_server(app, self._settings, self._control.links)
        metrics = DoorMetrics(self._server.door, self._server.body_memory)
        self._control.metrics.registry.register(metrics)
        self._server.on_started = on_ready
        await self._server.serve([listener])

    @asynccontextmanager
    async def _open_parts(self) -> AsyncIterator[Control]:
        """Open the parts. Loops have connections of their own, so that no number of requests can starve them."""
        settings = self._settings
        limits = settings.database
        async with (
            self._database(limits.loop_connections_max, "loops") as loop_database,
            self._database(limits.connections_max, "requests") as route_database,
        ):
            clock = await DatabaseClock.begin(loop_database, _clock_rules(settings))
            poster = Poster(loop_database, clock, self._ids)
            parts = Parts(
                settings=settings,
                process_id=self._ids.new(clock.now()),
                loop_database=loop_database,
                clock=clock,
                ids=self._ids,
                metrics=Metrics(__version__),
                poster=poster,
                keyring=await open_keyring(loop_database, settings, self._ids, clock.now()),
            )
            control = await make_control(parts, route_database)
            control.backups = BackupTarget(self._urls.owner, self._backups) if self._backups else None
            await self._register(control)
            try:
                yield control
            finally:
                await poster.close()
                await control.limiter.close()
                control.passwords.close()
                control.checks.close()
                await control.artefacts.close()
            await self._say_goodbye(control)

    @asynccontextmanager
    async def _database(self, connections: int, name: str) -> AsyncIterator[Database]:
        rules = self._settings.database
        limits = DatabaseLimits(connections, rules.statement_timeout_s, rules.lock_timeout_s)
        database = await Database.open(self._urls.program, limits, f"tidemill {name}")
        try:
            yield database
        finally:
            await database.close()

    async def _register(self, control: Control) -> None:
        now = control.clock.now()
        fingerprint = pool_fingerprint(self._settings)
        process = Process(control.process_id, socket.gethostname(), os.getpid(), __version__, fingerprint, now, now)
        await processes.register(control.loop_database, process, control.ids)
        others = await processes.listed(control.loop_database, None, 100)
        if strange := [other for other in others if other.is_running and other.settings != fingerprint]:
            log.warning("settings differ", processes=[str(other.id) for other in strange])

    async def _say_goodbye(self, control: Control) -> None:
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await processes.stop(control.loop_database, control.process_id, control.ids, control.clock.now())
        except (DatabaseFault, TimeoutError) as error:
            log.warning("left without a goodbye", cause=str(error))

    @asynccontextmanager
    async def _running_loops(self, control: Control) -> AsyncIterator[None]:
        control.runners = [LoopRunner(loop, SystemRandom()) for area in AREAS for loop in area.loops(control)]
        async with wake_ups(control):
            tasks = [asyncio.create_task(runner.run(), name=runner.loop.name) for runner in control.runners]
            links = asyncio.create_task(control.links.run(), name="links")
            for task in (*tasks, links):
                task.add_done_callback(self._loop_ended)
            try:
                yield
            finally:
                for runner in control.runners:
                    runner.stop()
                links.cancel()
                await _await_or_cancel(tasks, 0 if self._told_to_stop > 1 else _LAST_TICK_S)

    def _loop_ended(self, task: "asyncio.Task[None]") -> None:
        """Stop the process if a loop fails: that is a bug, and a process without a loop is worse than none."""
        if not task.cancelled() and (error := task.exception()):
            log.error("loop died", loop=task.get_name(), exc_info=error)
            self._bug = error
            self.stop()


async def _await_or_cancel(tasks: "list[asyncio.Task[None]]", patience_s: float) -> None:
    """Give the tasks time to end by themselves, then cancel them."""
    _, late = await asyncio.wait(tasks, timeout=patience_s)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)


def _collect_seldom() -> None:
    """Collect garbage seldom: loaded modules stay, and reference counts free most values of a batch. At Python's usual
    rate the search for cycles takes a quarter of a task's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)


def _clock_rules(settings: Settings) -> ClockRules:
    clock = settings.clock
    return ClockRules(
        step_us=int(clock.step_alarm_s * SECOND),
        settle_us=int(clock.settle_s * SECOND),
        uncertainty_us=int(clock.uncertainty_alarm_s * SECOND),
    )
