"""The supervisor of the embedded server: one process owns it, keeps it up and shuts it down in order.

The server outlives an owner that is killed; the next owner adopts it, or restarts it if it runs other programs or
settings. A start waits as long as the postmaster lives, because crash recovery takes its time; it fails only when the
postmaster has died, and then reports why.
"""

import asyncio
import errno
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import psutil

from tidemill.core.faults import DatabaseFault
from tidemill.host.locks import HeldLock
from tidemill.store.address import DatabaseUrls
from tidemill.store.embedded.binaries import Binaries, find_binaries
from tidemill.store.embedded.cluster import ensure_cluster
from tidemill.store.embedded.configuration import MARK, mark, server_arguments, write_configuration
from tidemill.store.embedded.failures import drop_old_logs, failure, file_faults, server_words
from tidemill.store.embedded.layout import ServerLayout, prepare, socket_directory
from tidemill.store.embedded.ownership import take_ownership
from tidemill.store.embedded.passwords import RolePasswords, database_urls, superuser_url
from tidemill.store.embedded.processes import (
    FAST,
    IMMEDIATE,
    READY,
    REPORT_EVERY_S,
    Postmaster,
    is_alive,
    remove_stale_files,
    running_postmaster,
    shut_down,
)
from tidemill.store.embedded.system_user import SystemUser, check_reach, find_system_user, launch

POLL_S = 0.05
WATCH_EVERY_S = 0.5
PROBE_TIMEOUT_S = 5.0
STEADY_S = 1.0  # a server that was up for so long is started again without waiting
PAUSE_MAX_S = 30.0
NOT_YET = (OSError, asyncpg.OperatorInterventionError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)
STILL_STARTING = (
    "The database server has been starting for {seconds:.0f} s: it is making good what an interruption left."
)


class EmbeddedServer:
    """The PostgreSQL server under one home. One process owns it; others attach."""

    def __init__(
        self, home: Path, *, server_user: str = "tidemill", report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._layout = ServerLayout.of(home)
        self._server_user = server_user
        self._report = report
        self._changing = asyncio.Lock()
        self._ownership: HeldLock | None = None
        self._child: subprocess.Popen[bytes] | None = None

    _account: SystemUser
    _binaries: Binaries
    _passwords: RolePasswords
    _process: psutil.Process
    _socket_directory: Path
    _started_at: float

    async def start(self) -> None:
        """Own the home and bring its server up, making the cluster first if there is none."""
        assert self._ownership is None, "a server is started once"
        with file_faults(self._layout):
            self._account = find_system_user(self._server_user, self._report)
            prepare(self._layout, self._account)
            await check_reach(self._account, self._layout.top)
            self._ownership = await take_ownership(self._layout)
        try:
            with file_faults(self._layout):
                self._binaries = await find_binaries(self._layout, self._account)
                self._passwords = await ensure_cluster(self._layout, self._account, self._binaries, self._report)
                await self._bring_up()
        except BaseException:
            await self.stop()
            raise

    async def watch(self) -> None:
        """Keep the server up until cancelled. Cancel this before `stop`."""
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            up_since = loop.time()
            await self._until_down()
            attempt = 0 if loop.time() - up_since > STEADY_S else attempt
            await asyncio.sleep(_pause_s(attempt))
            attempt += 1
            await self._restart()

    async def stop(self, *, immediate: bool = False) -> None:
        """Shut the server down, fast (sessions are cut, everything is written) or at once, and release ownership."""
        async with self._changing:
            if self._ownership is None:  # or somebody else has stopped it while we waited
                return
            try:
                await shut_down(self._layout, IMMEDIATE if immediate else FAST, self._report)
            finally:
                self._reap()
                self._ownership.release()
                self._ownership = None

    @property
    def urls(self) -> DatabaseUrls:
        """How the pool's database is reached."""
        return database_urls(self._passwords, self._socket_directory)

    @property
    def superuser_url(self) -> str:
        """How the superuser reaches the maintenance database, to create and rename databases."""
        return superuser_url(self._passwords, self._socket_directory)

    async def _until_down(self) -> None:
        up = True
        while up:
            await asyncio.sleep(WATCH_EVERY_S)
            up = self._is_up()

    async def _restart(self) -> None:
        self._report("The database server is down: starting it again.")
        try:
            async with self._changing:
                with file_faults(self._layout):
                    await self._bring_up()
        except DatabaseFault as fault:
            self._report(str(fault))

    async def _bring_up(self) -> None:
        """Adopt the server that runs, or start one, and wait until it takes connections."""
        self._reap()
        running = running_postmaster(self._layout)
        if running and self._is_ours(running):
            self._report(f"Adopting the database server that is running already (process {running.process.pid}).")
            self._adopt(running)
        else:
            if running:
                self._report("Restarting the database server: it runs other programs or settings.")
            await shut_down(self._layout, FAST, self._report)
            self._launch()
        await self._until_ready()

    def _is_ours(self, running: Postmaster) -> bool:
        return running.has_socket and running.runs_with(MARK + mark(self._layout, self._binaries))

    def _adopt(self, running: Postmaster) -> None:
        assert running.socket_directory is not None, "only a server with a socket is adopted"
        self._process = running.process
        self._socket_directory = running.socket_directory
        self._started_at = running.process.create_time()

    def _launch(self) -> None:
        """Start a server. The caller has shown that no process is left on the data."""
        self._socket_directory = socket_directory(self._layout, self._account)
        remove_stale_files(self._layout, self._socket_directory)
        drop_old_logs(self._layout)
        write_configuration(self._layout, self._account)
        arguments = server_arguments(self._layout, self._binaries, self._socket_directory)
        self._started_at = time.time()
        self._layout.start_log.unlink(missing_ok=True)
        with self._layout.start_log.open("xb") as log:
            self._child = launch(
                self._account, arguments, directory=self._layout.data, stdin=subprocess.DEVNULL, stdout=log
            )
        self._process = psutil.Process(self._child.pid)

    async def _until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        began = reported = loop.time()
        while not await self._accepts():
            if not is_alive(self._process):
                raise failure(self._layout, "PostgreSQL did not start", server_words(self._layout, self._started_at))
            if loop.time() - reported >= REPORT_EVERY_S:
                reported = loop.time()
                self._report(STILL_STARTING.format(seconds=loop.time() - began))
            await asyncio.sleep(POLL_S)

    async def _accepts(self) -> bool:
        """Whether the server takes connections. The pid file is read first: each refused connection would be a line in
        its log."""
        running = running_postmaster(self._layout)
        if running is None or running.process != self._process or running.status != READY:
            return False
        try:
            connection = await asyncpg.connect(self.superuser_url, timeout=PROBE_TIMEOUT_S)
            await connection.close(timeout=PROBE_TIMEOUT_S)
        except asyncpg.InvalidAuthorizationSpecificationError:
            raise DatabaseFault(
                f"The database refuses the passwords in {self._layout.passwords}: put back the file that belongs to "
                "it, or remove the file and have new ones set."
            ) from None
        except NOT_YET:
            return False
        except asyncpg.PostgresError:
            return True  # it answers, if only that it has too many sessions
        return True

    def _is_up(self) -> bool:
        self._reap()
        try:
            running = running_postmaster(self._layout)
        except OSError as error:
            # Without a descriptor to spare we cannot look, which is no reason to disturb the server. Whatever is wrong
            # with the disk will be reported by the attempt to start again.
            return error.errno in (errno.EMFILE, errno.ENFILE)
        return running is not None and running.process == self._process and running.has_socket

    def _reap(self) -> None:
        """Reap a dead child, which otherwise stays in the process list."""
        if self._child and self._child.poll() is not None:
            self._child = None


async def stop_orphan(home: Path, report: Callable[[str], None] = lambda _: None) -> bool:
    """Stop a server whose owner is gone. Returns whether there was one; raises AlreadyRunning if the owner lives."""
    layout = ServerLayout.of(home)
    if not layout.data.is_dir():
        return False
    with file_faults(layout):
        ownership = await take_ownership(layout)
        try:
            return await shut_down(layout, FAST, report)
        finally:
            ownership.release()


def _pause_s(attempt: int) -> float:
    """At once, then after half a second, then twice as long each time."""
    return 0.0 if attempt == 0 else min(PAUSE_MAX_S, 0.25 * 2.0**attempt)
