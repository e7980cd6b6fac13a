"""`tidemill up|down|control|status`: running a pool on this machine."""

import asyncio
import os
import resource
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.client.identity import chosen, named_url
from tidemill.cli.client.local_pool import (
    default_home,
    home_settings,
    load_configuration,
    named_home,
    operator_name,
    outside_urls,
    running_urls,
    server_of,
)
from tidemill.cli.terminal.as_option import named_by_option
from tidemill.cli.terminal.output import AsJson, CommandRefused, Exit, print_fields, print_json, report
from tidemill.core.accounts.roles import OPERATOR_FILE
from tidemill.core.faults import NotRunning, SettingsFault
from tidemill.core.settings import Settings, SourceKind
from tidemill.core.settings.process_addresses import own_address as address
from tidemill.host.standard_error import say
from tidemill.store.address import DatabaseUrls
from tidemill.store.embedded import make_home, owner_pid, stop_orphan
from tidemill.store.operations.backup import folder_of

if TYPE_CHECKING:
    from tidemill.serving.logs import Announce

Host = Annotated[str | None, typer.Option(help="The address to listen on; beyond this machine it needs TLS.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on.")]
Certificate = Annotated[Path | None, typer.Option(help="A certificate file for TLS, with --tls-key.")]
Key = Annotated[Path | None, typer.Option(help="The certificate's key.")]
Proxies = Annotated[
    str | None,
    typer.Option("--behind-proxy", help="Addresses of the proxies that end TLS before us, separated by commas."),
]

_DOWN_S = 60.0
_STATUS_S = 5.0
_OTHER_DESCRIPTORS = 200
_NOTHING: Mapping[str, str] = {}


Demo = Annotated[
    bool,
    typer.Option("--demo", help="Make an unused pool a demonstration, with people and nodes; it stays one."),
]


def up(
    host: Host = None,
    port: Port = None,
    tls_certificate: Certificate = None,
    tls_key: Key = None,
    behind_proxy: Proxies = None,
    demo: Demo = False,
) -> None:
    """Start this machine's pool, with its database."""
    demo = demo or _is_demonstration()
    modest = _demonstration_defaults() if demo else {}
    settings = _settings(host, port, tls_certificate, tls_key, behind_proxy, modest)
    _run(settings, own_server=True, demo=demo)


def control(
    host: Host = None,
    port: Port = None,
    tls_certificate: Certificate = None,
    tls_key: Key = None,
    behind_proxy: Proxies = None,
) -> None:
    """Add a control process to this machine's pool."""
    _run(_settings(host, port, tls_certificate, tls_key, behind_proxy), own_server=False, demo=False)


def _settings(
    host: str | None,
    port: int | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    behind_proxy: str | None,
    more: Mapping[str, str] = _NOTHING,
) -> Settings:
    flags = {
        **more,
        "host": host,
        "port": port,
        "http.tls_certificate": tls_certificate and tls_certificate.absolute(),
        "http.tls_key": tls_key and tls_key.absolute(),
        "http.trusted_proxies": behind_proxy,
    }
    return home_settings(flags)


def _is_demonstration() -> bool:
    """Whether a demonstration began in this home: it goes on as one, with its people and its nodes."""
    from tidemill.core.operations.demonstration import CUSTOMER, key_file

    return key_file(home_settings().home, CUSTOMER).exists()


def _demonstration_defaults() -> Mapping[str, str]:
    """Defaults for a demonstration. Its nodes share one machine, so a challenge takes little memory of each. At a
    terminal, nobody needs a log line about every HTTP request."""
    defaults = {"challenge.machine_memory_share": "0.5%", **({"log.level": "warning"} if sys.stderr.isatty() else {})}
    sources = load_configuration().sources
    return {name: value for name, value in defaults.items() if sources[name].kind is SourceKind.DEFAULT}


def down(as_json: AsJson = False) -> None:
    """Stop the pool of this machine, in order."""
    home = _home_to_stop()
    pid = owner_pid(home)
    if pid is None:
        if not asyncio.run(stop_orphan(home, report=say)):
            raise NotRunning("No pool is running here; there was nothing to stop.")
        report("The database server that an earlier pool had left was stopped.", {"stopped": "orphan"}, as_json=as_json)
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_S
    while owner_pid(home) == pid:
        if time.monotonic() > deadline:
            raise CommandRefused(f"The pool (process {pid}) is still draining after {_DOWN_S:.0f} s: run this again.")
        time.sleep(0.05)
    asyncio.run(stop_orphan(home, report=say))
    report("The pool has stopped.", {"stopped": "pool"}, as_json=as_json)


def _home_to_stop() -> Path:
    """The home of the pool to stop. Whatever is wrong with other settings, a pool that runs can be stopped."""
    try:
        settings = home_settings()
    except SettingsFault as fault:
        if named_url() is not None or named_by_option() is not None:
            raise
        say(str(fault))
        return named_home()
    if outside_urls(settings):
        raise CommandRefused("This pool uses an outside database: stop each of its processes with SIGTERM or Ctrl-C.")
    return settings.home


def status(as_json: AsJson = False) -> None:
    """Is the pool that commands ask running and well?"""
    try:
        settings = load_configuration().settings
    except SettingsFault:
        pid = owner_pid(home := named_home())
        say(f"The pool in {home} is {f'running (process {pid})' if pid else 'not running'}; its settings are wrong:")
        raise
    url = _asked(settings)
    readiness = _readiness(url, settings)
    if url == address(settings):
        readiness = _with_sandbox(readiness, settings)
    if as_json:
        print_json(readiness)
    else:
        stopped = "; ".join(f"{switch}, because: {reason}" for switch, reason in readiness["stopped"].items())
        place = {"home": str(settings.home)} if url == address(settings) else {}
        about = {"address": url, **place, "version": readiness["version"], "stopped": stopped or "nothing"}
        sandbox = {"sandbox": readiness["sandbox"]} if "sandbox" in readiness else {}
        print_fields({**about, **readiness["checks"], **sandbox})
    if not readiness["ready"]:
        raise CommandRefused("The pool is not ready.")


def _asked(settings: Settings) -> str:
    """The address of the pool that commands ask; where nobody is known, of this machine's."""
    try:
        return chosen()[0]
    except NotRunning:
        return address(settings)


def _readiness(url: str, settings: Settings) -> Mapping[str, Any]:
    """The readiness of a control process. We send it no secret, so we need not verify the certificate of our own."""
    import httpx2

    try:
        answer = httpx2.get(f"{url}/readyz", timeout=_STATUS_S, verify=url != address(settings))
        readiness: Mapping[str, Any] = answer.json() if "x-request-id" in answer.headers else {}
    except (httpx2.HTTPError, ValueError) as error:
        raise NotRunning(
            f"Nothing answers at {url}: start the pool with `tidemill up`, or set TIDEMILL_URL."
        ) from error
    if not readiness:
        raise NotRunning(f"What answers at {url} is not Tidemill: check TIDEMILL_PORT and TIDEMILL_URL.")
    return readiness


def _with_sandbox(readiness: Mapping[str, Any], settings: Settings) -> Mapping[str, Any]:
    """Add the sandbox of a demonstration, whose nodes are on this machine."""
    from tidemill.cli.operations.local_nodes import local_sandbox

    sandbox = local_sandbox(settings.home)
    return readiness if sandbox is None else {**readiness, "sandbox": sandbox}


def _run(settings: Settings, *, own_server: bool, demo: bool) -> None:
    import uvloop

    from tidemill.serving.logs import configure_logs

    announce = configure_logs(settings.log)
    _allow_connections(settings, announce)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(settings, announce, own_server=own_server, demo=demo))
        except asyncio.CancelledError:
            raise typer.Exit(Exit.INTERRUPTED) from None
    announce("The pool has stopped." if own_server else "The control process has stopped.")


async def _serve(settings: Settings, announce: "Announce", *, own_server: bool, demo: bool) -> None:
    from tidemill.control.operations.first_steps import FirstStep
    from tidemill.control.process import ControlProcess
    from tidemill.serving.http_server import check_certificate, listen
    from tidemill.serving.signals import stopped_by_signals

    started = time.monotonic()
    starting = asyncio.current_task()
    assert starting
    stop: Callable[[], object] = starting.cancel  # until we serve, there is nothing to drain
    with stopped_by_signals(lambda: stop()):  # noqa: PLW0108  # what stopping means changes once we serve
        check_certificate(settings.http)
        make_home(settings.home)
        with listen(settings.host, settings.port) as listener:
            async with AsyncExitStack() as stack:
                urls = outside_urls(settings)
                backups = folder_of(settings.home) if urls is None else None
                if urls is None:
                    urls = await _start_own_server(settings, announce, stack) if own_server else running_urls(settings)
                alone = FirstStep.DEMONSTRATION if demo else FirstStep.LINK
                step = alone if own_server else FirstStep.NOTHING
                process = ControlProcess(settings, urls, backups=backups, started_by=operator_name(), first_step=step)
                begin_nodes = _local_nodes(settings, announce, stack) if demo else None

                def ready(first: Mapping[str, str]) -> None:
                    _greet(settings, announce, time.monotonic() - started, first)
                    if begin_nodes:
                        begin_nodes()

                stop = process.stop
                await process.run(listener, on_ready=ready)


def _local_nodes(settings: Settings, announce: "Announce", stack: AsyncExitStack) -> Callable[[], None]:
    """The function that starts a demonstration's nodes once the pool serves. They end when the pool has stopped."""
    from tidemill.cli.operations.local_nodes import LocalNodes

    nodes = LocalNodes(settings, announce, _to_try(settings))
    stack.push_async_callback(nodes.stopped)
    return nodes.begin


async def _start_own_server(settings: Settings, announce: "Announce", stack: AsyncExitStack) -> DatabaseUrls:
    """Start the embedded server and keep it up for as long as we run."""
    server = server_of(settings, report=announce)
    await server.start()
    stack.push_async_callback(server.stop)
    watching = asyncio.create_task(server.watch())
    stack.push_async_callback(_cancel, watching)
    return server.urls


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _allow_connections(settings: Settings, announce: "Announce") -> None:
    """Raise the limit of open files. Every connection takes one, and most systems allow few by default."""
    needed = settings.http.connections_max + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else needed
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(needed, most)), hard))
    if most < needed:
        announce(f"This system allows {most} open files; {needed} are needed for http.connections_max connections.")


def _greet(settings: Settings, announce: "Announce", seconds: float, first: Mapping[str, str]) -> None:
    """Announce what a newcomer sees first."""
    command = _command(settings)
    announce(
        f"Tidemill is running at {address(settings)} (ready after {seconds:.1f} s).",
        **first,
        home=str(settings.home),
        token=str(settings.home / OPERATOR_FILE),
        status=f"{command} status",
        events=f"{command} events --follow",
        API=f"{address(settings)}/api/v1/openapi.json",
        mail=settings.mail.smtp_host or f"outbox ({command} mail)",
        stop="Ctrl-C",
    )


def _to_try(settings: Settings) -> Mapping[str, str]:
    """Commands for a newcomer to a demonstration, by what they show."""
    command = _command(settings)
    return {
        "order": f"{command} run matmul --m 2048 --n 2048 --k 2048",
        "nodes": f"{command} --as operator nodes list",
        "pay": f"{command} --as operator ledger accounts --kind provider_locked",
    }


def _command(settings: Settings) -> str:
    """Our command as one can type it in another terminal, where this one's variables are not set."""
    command = "tidemill" if shutil.which("tidemill") else os.path.relpath(Path(sys.executable).with_name("tidemill"))
    home = [f"TIDEMILL_HOME={shlex.quote(str(settings.home))}"] if settings.home != default_home() else []
    port = [f"TIDEMILL_PORT={settings.port}"] if settings.port != Settings.port else []
    return " ".join([*home, *port, command])
