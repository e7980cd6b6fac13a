"""`tidemill agent …`: an owner's machine joins a pool, works, rests and leaves.

Commands work whether an agent runs or not: they change files in its home, and a running agent notices.
"""

import asyncio
import getpass
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.agent.home.home import Home, prepare, running_pid
from tidemill.agent.home.identity import checked_urls
from tidemill.agent.home.leave_wish import REASON_MAX, LeaveWish, forget_everything, write_leave_wish
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.home.status_file import read_status
from tidemill.cli.agent import agent_rules, agent_service
from tidemill.cli.agent.agent_home import agent_settings, choose_node, member_home, own_home
from tidemill.cli.agent.agent_status import print_status
from tidemill.cli.client.local_pool import operator_name
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, Exit, report
from tidemill.core.nodes.join_tokens import JoinTokenParts, read_token
from tidemill.core.nodes.rules.rules import WorkMode
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings
from tidemill.core.settings.sections.process import LogFormat
from tidemill.host.clocks import wall
from tidemill.host.standard_error import say

if TYPE_CHECKING:
    from tidemill.agent.agent import Agent, AgentEnd
    from tidemill.agent.link.link_news import LinkNews

app = CommandGroup("This machine as a node of a pool: join, run, rest, leave.")
app.add_typer(agent_rules.app, name="rules")

Authority = Annotated[
    Path | None, typer.Option("--ca", help="Certificates of the authority that signed the pool's, in PEM form.")
]
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Read by numpy when it is loaded. A challenge has a thread for each core itself; more would only be in their way."""

_TOKEN_MAX = 1_000
_LEAVE_S = 30.0
_POLL_S = 0.2


@app.callback()
def agent(
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NAME", callback=choose_node, help="A node of the demonstration, such as ada."),
    ] = None,
) -> None:
    """This machine as a node of a pool: join, run, rest, leave."""


@app.command()
def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="The pool's address, such as https://pool.example.com.")],
    token_file: Annotated[
        Path | None, typer.Option(help="The file that holds the join token; without it, stdin does.")
    ] = None,
    ca: Authority = None,
    once: Annotated[bool, typer.Option("--once", help="Leave the running to `tidemill agent run`.")] = False,
) -> None:
    """Join a pool, and go on running as its node."""
    settings = agent_settings(ca)
    token = read_token(_token(token_file))
    if isinstance(token, Refusal):
        raise CommandRefused(token.sentence)
    _start(settings, own_home(settings), token=token, url=url, once=once)


@app.command()
def run(ca: Authority = None) -> None:
    """Run as the node that this machine is, until stopped."""
    settings = agent_settings(ca)
    _start(settings, own_home(settings))


@app.command()
def status(as_json: AsJson = False) -> None:
    """How this machine stands with its pool."""
    print_status(member_home(agent_settings()), as_json=as_json)


@app.command()
def drain(
    wait: Annotated[bool, typer.Option("--wait", help="Return when nothing runs any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Finish what this machine has, and take no new work until you resume it."""
    home = _set_work(WorkMode.DRAIN)
    if wait:
        _wait_until_idle(home)
    report("This machine takes no new work until you resume it.", {"work": WorkMode.DRAIN.value}, as_json=as_json)


@app.command()
def pause(as_json: AsJson = False) -> None:
    """Stop working at once, until you resume it."""
    _set_work(WorkMode.PAUSE)
    report("This machine does not work until you resume it.", {"work": WorkMode.PAUSE.value}, as_json=as_json)


@app.command()
def resume(as_json: AsJson = False) -> None:
    """Work again, as the rules allow."""
    _set_work(WorkMode.RUN)
    report("This machine takes work again, as its rules allow.", {"work": WorkMode.RUN.value}, as_json=as_json)


@app.command()
def leave(
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for the pool's records.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Forget the pool even if it cannot be told.")] = False,
    as_json: AsJson = False,
) -> None:
    """Leave the pool for good, and forget the identity that this machine had there."""
    from tidemill.agent.startup import member_of

    if len(reason) > REASON_MAX or not reason.isprintable():
        raise CommandRefused(f"A reason has at most {REASON_MAX} printable characters: shorten it.")
    settings = agent_settings()
    home = own_home(settings)
    if not force:
        member_of(home)
    prepare(home)
    write_leave_wish(home, LeaveWish(reason, force))
    _carry_out_leave(settings, home, force=force)
    forget_everything(home)
    report("This machine has left the pool and forgotten it.", {"left": True}, as_json=as_json)


# Help lists commands in the order of these calls.
app.command()(agent_service.doctor)
app.command()(agent_service.install)
app.command()(agent_service.uninstall)


def _welcome(node_id: str, *, once: bool) -> str:
    """What this machine is now, and what its owner may do next."""
    goes_on = "Run it with `tidemill agent run`" if once else "It runs until you press Ctrl-C"
    service = " `tidemill agent install` makes it a service." if os.geteuid() == 0 else ""
    return f"This machine is node {node_id} of the pool. {goes_on}; `tidemill agent status` shows how it is.{service}"


def _token(file: Path | None) -> str:
    """The join token. It is never an argument: every user of the machine could read it."""
    if file is not None:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_TOKEN_MAX)
    if sys.stdin.isatty():
        with suppress(EOFError):
            return getpass.getpass("Join token: ")
    return sys.stdin.readline(_TOKEN_MAX)


def _start(
    settings: Settings, home: Home, *, token: JoinTokenParts | None = None, url: str = "", once: bool = False
) -> None:
    os.environ.setdefault(_BLAS_THREADS, "1")
    from tidemill.agent.agent import AgentEndKind
    from tidemill.agent.startup import NotJoined
    from tidemill.serving.logs import configure_logs

    configure_logs(settings.log)
    try:
        ending = asyncio.run(_run(settings, home, token, url, once=once))
    except NotJoined as fault:
        raise CommandRefused(str(fault)) from None
    say(ending.sentence)
    if ending.end is not AgentEndKind.STOPPED:
        raise typer.Exit(Exit.FINAL)


async def _run(settings: Settings, home: Home, token: JoinTokenParts | None, url: str, *, once: bool) -> "AgentEnd":
    from tidemill.agent import startup
    from tidemill.agent.agent import Agent

    if token is None:
        startup.member_of(home)
    else:
        startup.expect_newcomer(home)
        checked_urls([url])
    async with startup.equipped(home, settings) as equipment:
        if token is None:
            membership = startup.member_of(home)
        else:
            membership = startup.applicant_in(home, token, [url], settings.agent.ca_file)
        news = _news(settings, startup.JOIN_S if token else None)
        agent = Agent(equipment, membership, token.secret_part if token else None, news)
        _stop_on_signals(agent)
        running = asyncio.create_task(agent.only_join() if once else agent.run())
        if token is not None:
            await startup.joined(agent, running)
            say(_welcome(str(agent.standing.membership.node_id), once=once))
        if once:
            agent.stop()
        return await running


def _news(settings: Settings, joins_within_s: float | None) -> "LinkNews":
    """Sentences for a person at a terminal, log lines elsewhere."""
    from tidemill.agent.link.link_news import LoggedLinkNews, SpokenLinkNews

    if sys.stderr.isatty() and settings.log.format is not LogFormat.JSON:
        return SpokenLinkNews(say, joins_within_s=joins_within_s)
    return LoggedLinkNews()


def _stop_on_signals(agent: "Agent") -> None:
    """The first signal stops the agent in order; the second at once, which also loses nothing."""
    was_asked = False

    def stop() -> None:
        nonlocal was_asked
        if was_asked:
            os._exit(Exit.INTERRUPTED)
        was_asked = True
        agent.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop)


def _set_work(work: WorkMode) -> Home:
    home = member_home(agent_settings())
    prepare(home)
    book = RulesFile(home.rules).change({"work": work.value}, by=operator_name(), now=wall())
    assert not isinstance(book, Refusal), "these are the words that the rule has"
    return home


def _wait_until_idle(home: Home) -> None:
    """Wait until a status that already shows the draining says that nothing is in hand."""
    while running_pid(home) is not None:
        last_status = read_status(home.status, wall())
        if last_status:
            work = last_status.fields.get("rules", {}).get("work", {}).get("value")
            if work == WorkMode.DRAIN.value and last_status.fields.get("work", {}).get("in_hand") == 0:
                return
        time.sleep(_POLL_S)


def _carry_out_leave(settings: Settings, home: Home, *, force: bool) -> None:
    """Let the agent that runs here leave; without one, leave by ourselves."""
    if running_pid(home) is None:
        if not force:
            asyncio.run(_leave_by_ourselves(settings, home))
        return
    deadline = time.monotonic() + _LEAVE_S
    while running_pid(home) is not None:
        if time.monotonic() > deadline:
            raise CommandRefused(_untold("The agent that runs here has had no answer of the pool."))
        time.sleep(_POLL_S)


async def _leave_by_ourselves(settings: Settings, home: Home) -> None:
    from tidemill.agent.agent import Agent, AgentEndKind
    from tidemill.agent.startup import equipped, member_of

    membership = member_of(home)
    async with equipped(home, settings) as equipment:
        agent = Agent(equipment, membership)
        _stop_on_signals(agent)
        timeout = asyncio.get_running_loop().call_later(_LEAVE_S, agent.stop)
        ending = await agent.run()
        timeout.cancel()
        if ending.end is AgentEndKind.STOPPED:
            raise CommandRefused(_untold(agent.standing.link.sentence or "The pool has not answered."))


def _untold(cause: str) -> str:
    return (
        f"{cause} This machine leaves when its agent runs and the pool can be told: run this again to see it through, "
        "or leave with --force."
    )
