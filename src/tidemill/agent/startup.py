"""Equips an agent to run in a home, and turns a join token into a home with an identity.

A refused join leaves nothing behind but the owner's rules. When the pool's answer was lost, the identity stays: it can
join again without a second use of the token.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import SystemRandom

import structlog

from tidemill.agent.agent import Agent, AgentEnd, Equipment
from tidemill.agent.artefacts.access import open_artefact_access
from tidemill.agent.home.home import Home, prepare, take_lock
from tidemill.agent.home.identity import (
    Membership,
    checked_urls,
    forget_membership,
    make_membership,
    new_membership,
    read_membership,
    update_membership,
)
from tidemill.agent.home.leave_wish import forget_pool
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.machine import Hardware
from tidemill.agent.work.workshop import open_workshop
from tidemill.core.faults import AgentFault
from tidemill.core.nodes.join_tokens import JoinTokenParts
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.settings import Settings
from tidemill.core.signatures import SEED_BYTES
from tidemill.host.private_files import replace_private_file
from tidemill.link.dialled.connection import PoolUnreachable, trust_of
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.spool import Spool

log = structlog.get_logger()

JOIN_S = 30.0


class NotJoined(AgentFault):
    """There is no identity to run with: none was made, or the pool did not want it."""

    code = "not_joined"


class JoinRefused(NotJoined):
    """The pool does not want this machine: nothing of the join is kept."""

    code = "join_refused"


class JoinUnheard(PoolUnreachable):
    """No pool has heard of this machine: nothing of the join is kept."""

    code = "join_unheard"


@asynccontextmanager
async def equipped(home: Home, settings: Settings) -> AsyncIterator[Equipment]:
    """Lock the home, and open everything in it. A join that came to nothing is forgotten after all of it is closed:
    closing needs the files."""
    prepare(home)
    lock = await take_lock(home)
    try:
        async with _opened(home, settings) as equipment:
            yield equipment
    except (JoinRefused, JoinUnheard):
        forget_pool(home)
        raise
    finally:
        lock.release()


def member_of(home: Home) -> Membership:
    """The identity of a machine that has joined."""
    membership = read_membership(home.membership)
    if membership is None:
        raise NotJoined("This machine has joined no pool: run `tidemill agent join URL` with a join token.")
    if membership.node_id is None:
        raise NotJoined("This machine began to join a pool and has no answer yet: run `tidemill agent join` again.")
    return membership


def expect_newcomer(home: Home) -> None:
    """Raise a fault if this machine is a node already: it can be in one pool only."""
    membership = read_membership(home.membership)
    if membership is not None and membership.node_id is not None:
        raise AgentFault(
            f"This machine is node {membership.node_id} of a pool: run `tidemill agent leave` before it joins."
        )


def applicant_in(home: Home, token: JoinTokenParts, urls: Sequence[str], ca_file: Path | None) -> Membership:
    """An identity to join with: that of an unanswered join, or a new one. The caller holds the home's lock."""
    earlier = read_membership(home.membership)
    if ca_file is not None:
        replace_private_file(home.authority, ca_file.read_text("utf-8"))
    if earlier is not None and earlier.pool_fingerprint == token.fingerprint:
        return update_membership(home.membership, earlier, urls=checked_urls(urls))
    membership = new_membership(secrets.token_bytes(SEED_BYTES), token.fingerprint, urls)
    forget_membership(home.membership)
    make_membership(home.membership, membership)
    return membership


async def joined(agent: Agent, running: "asyncio.Task[AgentEnd]", within_s: float = JOIN_S) -> None:
    """Wait until the pool has registered the node. Otherwise raise why not."""
    registering = asyncio.create_task(agent.registered.wait())
    try:
        await asyncio.wait([registering, running], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if agent.registered.is_set():
            return
    finally:
        registering.cancel()
    refused = running.done()
    sentence = agent.standing.link.sentence or "The pool did not answer in time."
    agent.stop()
    await running
    if refused:
        raise JoinRefused(sentence)
    if agent.said_hello:
        raise PoolUnreachable(
            f"{sentence} The pool may have registered this machine: run this again, with the same token."
        )
    raise JoinUnheard(sentence)


@asynccontextmanager
async def _opened(home: Home, settings: Settings) -> AsyncIterator[Equipment]:
    """Everything in a home. The caller holds its lock."""
    spool = await Spool.open(home.spool, settings.agent.spool_bytes)
    if spool.set_aside:
        log.warning("spool was damaged", set_aside=str(spool.set_aside))
    try:
        trust = trust_of(_authority(home, settings.agent.ca_file))
        reporting, dice = Reporter(spool), SystemRandom()
        async with (
            open_workshop(home) as workshop,
            open_artefact_access(home, settings.agent.cache_bytes, trust, dice, reporting) as access,
        ):
            yield Equipment(
                home=home,
                reporting=reporting,
                hardware=Hardware(home.path),
                rules=RulesFile(home.rules),
                workshop=workshop,
                artefact_access=access,
                limits=HeatLimits(settings.nodes.pause_above_c, settings.nodes.resume_at_c),
                trust=trust,
                dice=dice,
            )
    finally:
        await spool.close()


def _authority(home: Home, ca_file: Path | None) -> Path | None:
    return ca_file or (home.authority if home.authority.exists() else None)
