"""Assembles a control process, apart from its loops: the parts that find, limit and admit callers, and the links."""

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from tidemill.artefacts.store_choice import open_store
from tidemill.control.accounts.access_tokens import AccessTokens
from tidemill.control.accounts.callers import Callers
from tidemill.control.accounts.passwords import Passwords
from tidemill.control.context import Control
from tidemill.control.events.feed import EventFeed
from tidemill.control.http.denials import Denials
from tidemill.control.http.limiter import Limiter
from tidemill.control.http.limits import CallerLimits
from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.jobs.pricing_queue import PricingQueue
from tidemill.control.metrics import LinkMetrics
from tidemill.control.nodes.node_registry import LinkRefusals, NodeRegistry
from tidemill.control.parts import Parts
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.control.trust.check_processes import CheckProcesses
from tidemill.core.accounts.roles import HOME_OPERATOR, METRICS_FILE, OPERATOR_FILE, SCRAPER, Caller
from tidemill.core.accounts.sessions import SessionRules
from tidemill.core.clock import SECOND
from tidemill.core.faults import Fault
from tidemill.core.settings import Settings
from tidemill.core.signatures import fingerprint
from tidemill.host.private_files import make_private_file_once
from tidemill.link.held.door import LinkRules
from tidemill.link.held.server import Links
from tidemill.store.database import Database
from tidemill.store.operations.pool_secrets import load_identity, load_verification_key

_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


async def make_control(parts: Parts, route_database: Database) -> Control:
    """The parts, and what routes need besides to find, limit and admit callers."""
    settings = parts.settings
    rules, tokens, link_refusals = _session_rules(settings), AccessTokens(parts), LinkRefusals()
    await tokens.renew(parts.clock.now())
    identity = await load_identity(
        parts.loop_database, parts.keyring, parts.ids, parts.clock.now(), secrets.token_bytes
    )
    verification = await load_verification_key(
        parts.loop_database, parts.keyring, parts.ids, parts.clock.now(), secrets.token_bytes
    )
    intake = AttemptReportIntake(parts)
    links = Links(NodeRegistry(parts, link_refusals, intake), identity, parts.clock, _link_rules(settings))
    parts.metrics.registry.register(LinkMetrics(links))
    return Control(
        **vars(parts),
        route_database=route_database,
        feed=EventFeed(parts, route_database),
        limiter=Limiter(parts.loop_database, parts.clock),
        limits=CallerLimits(settings.limits),
        passwords=Passwords(at_once=settings.login.hashes_at_once, waiting_max=settings.login.hashes_waiting_max),
        tokens=tokens,
        callers=Callers(parts, route_database, tokens, rules, _home_tokens(settings.home), fingerprint(identity.key)),
        artefacts=open_store(settings.artefacts, settings.home),
        session_rules=rules,
        denials=Denials(),
        links=links,
        attempt_reports=intake,
        link_refusals=link_refusals,
        verification=verification,
        pricing=PricingQueue(settings.market),
        checks=CheckProcesses(settings.verification),
        policies=frozenset(placement_policies(settings)),
    )


def _link_rules(settings: Settings) -> LinkRules:
    return LinkRules(
        beat_ms=int(settings.link.heartbeat_s * 1000),
        connections_max=settings.link.connections_max,
        trusted_proxies=tuple(settings.http.trusted_proxies),
    )


def _session_rules(settings: Settings) -> SessionRules:
    login = settings.login
    return SessionRules(
        idle_us=int(login.session_idle_s * SECOND),
        lifetime_us=int(login.session_lifetime_s * SECOND),
        remembered_us=int(login.session_remembered_s * SECOND),
        binding=login.session_binding,
    )


def _home_tokens(home: Path) -> Mapping[str, Caller]:
    """The tokens in the home: of its owner, who is an operator, and of whoever reads metrics."""
    return {_token_in(home / OPERATOR_FILE): HOME_OPERATOR, _token_in(home / METRICS_FILE): SCRAPER}


def _token_in(file: Path) -> str:
    """A token of the home. Made once, readable only by the owner of the home.

    A file that does not hold a token is refused: an empty one would let everybody in.
    """
    if not file.exists():
        make_private_file_once(file, secrets.token_urlsafe(32) + "\n")
    token = file.read_text("utf-8", errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise Fault(f"{file} does not hold a token any more: remove it, and a new one is made at the next start.")
    return token
