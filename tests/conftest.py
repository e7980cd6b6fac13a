"""What all tests share: who needs what, what each part costs, and a real PostgreSQL with a fresh database a test."""

import asyncio
import gc
import os
import secrets
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.worlds.clusters import forget_cluster, give_cluster
from tests.worlds.needs import REASONS
from tests.worlds.places import reachable_directory
from tidemill.core.ids import Ids
from tidemill.store.address import DatabaseUrls, replace_database
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded import EmbeddedServer, database_statements

if TYPE_CHECKING:
    from tests.worlds.pools.pool import Running

# A shell starts what runs in its background with Ctrl-C ignored, and nohup with a closed terminal: so would the pools
# that tests start and stop.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)

gc.disable()  # until everything is collected: nothing of it is ever garbage, and looking for some takes seconds

ROOT = Path(__file__).parent.parent

_cost_s: dict[str, float] = defaultdict(float)
_cpu_s: dict[str, float] = defaultdict(float)
_spent_s = 0.0
_FIRST = ("control", "store", "system", "cli", "agent", "browser", "artefacts", "link")
_tests: dict[str, int] = defaultdict(int)
_skips: list[str] = []
_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long tests instead of the others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    soak = config.getoption("--soak")
    left_out = [item for item in items if bool(item.get_closest_marker("soak")) != soak]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = sorted((item for item in items if item not in gone), key=_comes_at)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def _comes_at(item: pytest.Item) -> int:
    """Files that wait for much come first, so that none of them is left for the end."""
    part = item.nodeid.split("/")[1]
    return _FIRST.index(part) if part in _FIRST else len(_FIRST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for what in marker.args:
            if reason := REASONS[what]():
                pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After the last test of a file, say how much of a processor it took, with every process that it started."""
    global _spent_s
    yield
    if nextitem is None or nextitem.path != item.path:
        before, _spent_s = _spent_s, _tree_s()
        item.user_properties.append(("cpu_s", max(0.0, _spent_s - before)))


def _tree_s() -> float:
    """The processor time of this process and of all below it, also of those that have ended."""
    own = psutil.Process()
    spent = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            spent += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it has just ended: its parent counts it
    return spent


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    part = report.nodeid.split("/")[1]
    _cost_s[part] += report.duration
    _tests[part] += report.when == "call"
    if report.when == "teardown":
        _cpu_s[part] += sum(float(value) for name, value in report.user_properties if name == "cpu_s")
    if report.skipped and not hasattr(report, "wasxfail"):
        _skips.append(f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else ''}")


def pytest_unconfigure() -> None:
    forget_cluster()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skips and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("what each part cost")
    for part, cost_s in sorted(_cost_s.items(), key=lambda item: -item[1]):
        cpu_s = _cpu_s[part]
        terminalreporter.write_line(
            f"{part:<10} {_tests[part]:>5} tests {cost_s:>7.1f} s {cpu_s:>7.1f} s of a processor"
        )
    for skip in _skips:
        terminalreporter.write_line(f"skipped    {skip}")
    if _skips and os.environ.get("CI") == "true":
        terminalreporter.write_line("With CI=true a skipped test is a failure.", red=True)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the server's user can reach; whatever still runs there is ended with the test."""
    with reachable_directory() as directory:
        yield directory


@pytest.fixture
def ids() -> Ids:
    return Ids(secrets.randbits)


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """One server for all tests that only need a database; its own database is the template of theirs."""
    with reachable_directory() as home:
        give_cluster(home)
        embedded = EmbeddedServer(home)
        asyncio.run(embedded.start())
        try:
            yield embedded
        finally:
            asyncio.run(embedded.stop())


@pytest.fixture(scope="session")
def shared_pool() -> Iterator["Running"]:
    """One pool a worker, for tests that need only accounts of their own; its limits keep nobody waiting."""
    from tests.worlds.pools.people import MANY
    from tests.worlds.pools.pool import pool_in

    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        running = pool.up()
        running.set_up()
        yield running
        assert '"bug"' not in running.said()


@pytest.fixture
async def empty_urls(server: EmbeddedServer) -> AsyncIterator[DatabaseUrls]:
    """A database with nothing in it."""
    async for urls in _fresh(server, "template1"):
        yield urls


@pytest.fixture
async def urls(server: EmbeddedServer) -> AsyncIterator[DatabaseUrls]:
    """A migrated database of the test's own."""
    async for fresh in _fresh(server, "tidemill"):
        yield fresh


@pytest.fixture
async def database(urls: DatabaseUrls) -> AsyncIterator[Database]:
    opened = await Database.open(urls.program, DatabaseLimits(connections=10, statement_s=30, lock_s=10), "test")
    try:
        yield opened
    finally:
        await opened.close()


async def _fresh(server: EmbeddedServer, template: str) -> AsyncIterator[DatabaseUrls]:
    name = f"test_{next(_numbers)}"
    create, *grants = database_statements(name)
    superuser = await connect(server.superuser_url)
    try:
        for statement in (f"{create} TEMPLATE {template} STRATEGY FILE_COPY", *grants):
            await superuser.execute(statement)
        yield DatabaseUrls(replace_database(server.urls.program, name), replace_database(server.urls.owner, name))
        await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await superuser.close()
