"""What a control process is made of besides its loops: who finds, limits and lets in whoever asks, and the links."""

import secrets

from tidemill.artefacts.opening import open_store
from tidemill.control.callers import Callers
from tidemill.control.context import Control
from tidemill.control.denials import Denials
from tidemill.control.feed import EventFeed
from tidemill.control.limiter import Limiter
from tidemill.control.limits import CallerLimits
from tidemill.control.link_metrics import LinkMetrics
from tidemill.control.node_registry import LinkRefusals, NodeRegistry
from tidemill.control.operator import operator_token
from tidemill.control.parts import Parts
from tidemill.control.passwords import Passwords
from tidemill.control.receiving import Receiving
from tidemill.control.tokens import Tokens
from tidemill.core.accounts.sessions import SessionRules
from tidemill.core.clock import SECOND
from tidemill.core.settings import Settings
from tidemill.core.signatures import fingerprint
from tidemill.link.rules import LinkRules
from tidemill.link.server import Links
from tidemill.store.database import Database
from tidemill.store.pool_secrets import load_identity, load_verification_key


async def make_control(parts: Parts, for_requests: Database) -> Control:
    """What routes need besides: whoever asks is found, limited and let in by these."""
    settings = parts.settings
    rules, tokens, link_refusals = _session_rules(settings), Tokens(parts), LinkRefusals()
    await tokens.renew(parts.clock.now())
    identity = await load_identity(parts.database, parts.keyring, parts.ids, parts.clock.now(), secrets.token_bytes)
    verification = await load_verification_key(
        parts.database, parts.keyring, parts.ids, parts.clock.now(), secrets.token_bytes
    )
    receiving = Receiving(parts)
    links = Links(NodeRegistry(parts, link_refusals, receiving), identity, parts.clock, _link_rules(settings))
    parts.metrics.registry.register(LinkMetrics(links))
    return Control(
        **vars(parts),
        requests=for_requests,
        feed=EventFeed(parts, for_requests),
        limiter=Limiter(parts.database, parts.clock),
        limits=CallerLimits(settings.limits),
        passwords=Passwords(at_once=settings.login.hashes_at_once, waiting_max=settings.login.hashes_waiting_max),
        tokens=tokens,
        callers=Callers(parts, for_requests, tokens, rules, operator_token(settings.home), fingerprint(identity.key)),
        artefacts=open_store(settings.artefacts, settings.home),
        session_rules=rules,
        denials=Denials(),
        links=links,
        receiving=receiving,
        link_refusals=link_refusals,
        verification=verification,
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
