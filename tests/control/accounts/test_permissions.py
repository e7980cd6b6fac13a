"""Every route, every kind of caller, own and foreign objects: who is let in, and that a foreign one is a missing one.

The table below is written by hand, beside the product's own. A route that nobody listed here fails, and so does one
whose row in the product says something else, or whose guard does something else than its row says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, People, Person, bearer, code_of, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.control.app import create_api
from tidemill.control.http.guard import GuardedRoute
from tidemill.core.accounts.permissions import RULES, ObjectScope, RouteRule
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.clock import Instant
from tidemill.core.signatures import Identity

NOBODY = "0190a000-0000-7000-8000-000000000000"


class Row(Enum):
    """What the table says of a route."""

    UNGUARDED = auto()
    ALWAYS_OPEN = auto()
    OPEN = auto()
    EVENTS = auto()
    OWN = auto()
    OWN_FRESH = auto()
    OWN_PROVIDER = auto()
    OWN_READ = auto()
    TOKENS_READ = auto()
    TOKENS_WRITE = auto()
    NODES_READ = auto()
    NODES_WRITE = auto()
    ARTEFACTS_READ = auto()
    ARTEFACTS_WRITE = auto()
    UPLOADS = auto()
    ONLY_NODES = auto()
    MODELS_READ = auto()
    JOBS_READ = auto()
    JOBS_WRITE = auto()
    JOBS_ORDER = auto()
    POOL_READ = auto()
    POOL_WRITE = auto()
    POOL_IN_PERSON = auto()
    POOL_FRESH = auto()
    METRICS = auto()


ROWS = {
    "GET /": Row.UNGUARDED,
    "GET /account": Row.UNGUARDED,
    "GET /confirm": Row.UNGUARDED,
    "GET /forgot": Row.UNGUARDED,
    "GET /login": Row.UNGUARDED,
    "GET /pages/{name}": Row.UNGUARDED,
    "GET /register": Row.UNGUARDED,
    "GET /reset": Row.UNGUARDED,
    "GET /setup": Row.UNGUARDED,
    "GET /healthz": Row.UNGUARDED,
    "GET /readyz": Row.UNGUARDED,
    "GET /metrics": Row.METRICS,
    "GET /api/v1/openapi.json": Row.ALWAYS_OPEN,
    "POST /api/v1/setup": Row.ALWAYS_OPEN,
    "GET /api/v1/events": Row.EVENTS,
    "GET /api/v1/audit/head": Row.OPEN,
    "GET /api/v1/audit": Row.POOL_READ,
    "POST /api/v1/auth/register": Row.OPEN,
    "POST /api/v1/auth/confirm": Row.OPEN,
    "POST /api/v1/auth/login": Row.OPEN,
    "POST /api/v1/auth/refresh": Row.OPEN,
    "POST /api/v1/auth/forgot": Row.OPEN,
    "POST /api/v1/auth/reset": Row.OPEN,
    "GET /api/v1/auth/check": Row.OWN_READ,
    "POST /api/v1/auth/logout": Row.OWN,
    "POST /api/v1/auth/reauthenticate": Row.OWN,
    "GET /api/v1/account": Row.OWN_READ,
    "POST /api/v1/account/password": Row.OWN_FRESH,
    "POST /api/v1/account/address": Row.OWN_FRESH,
    "POST /api/v1/account/language": Row.OWN,
    "POST /api/v1/account/roles": Row.OWN_FRESH,
    "POST /api/v1/account/kyc": Row.OWN_PROVIDER,
    "POST /api/v1/account/delete": Row.OWN_FRESH,
    "GET /api/v1/account/logins": Row.OWN_READ,
    "GET /api/v1/account/sessions": Row.OWN_READ,
    "POST /api/v1/account/sessions/end-others": Row.OWN,
    "DELETE /api/v1/account/sessions/{session_id}": Row.OWN,
    "POST /api/v1/account/second-factor": Row.OWN_FRESH,
    "POST /api/v1/account/second-factor/confirm": Row.OWN_FRESH,
    "POST /api/v1/account/second-factor/recovery-codes": Row.OWN_FRESH,
    "POST /api/v1/account/second-factor/remove": Row.OWN_FRESH,
    "GET /api/v1/account/keys": Row.OWN_READ,
    "POST /api/v1/account/keys": Row.OWN_FRESH,
    "POST /api/v1/account/keys/{key_id}/rotate": Row.OWN_FRESH,
    "DELETE /api/v1/account/keys/{key_id}": Row.OWN,
    "GET /api/v1/nodes/join-tokens": Row.TOKENS_READ,
    "POST /api/v1/nodes/join-tokens": Row.TOKENS_WRITE,
    "DELETE /api/v1/nodes/join-tokens/{token_id}": Row.TOKENS_WRITE,
    "GET /api/v1/nodes": Row.NODES_READ,
    "GET /api/v1/nodes/{node_id}": Row.NODES_READ,
    "GET /api/v1/nodes/{node_id}/history": Row.NODES_READ,
    "GET /api/v1/nodes/{node_id}/telemetry": Row.NODES_READ,
    "GET /api/v1/nodes/{node_id}/considered": Row.NODES_READ,
    "PATCH /api/v1/nodes/{node_id}": Row.NODES_WRITE,
    "DELETE /api/v1/nodes/{node_id}": Row.NODES_WRITE,
    "PUT /api/v1/nodes/{node_id}/rules": Row.NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/drain": Row.NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/pause": Row.NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/resume": Row.NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/suspend": Row.POOL_WRITE,
    "POST /api/v1/nodes/{node_id}/unsuspend": Row.POOL_WRITE,
    "OPTIONS /api/v1/artefacts/uploads": Row.OPEN,
    "POST /api/v1/artefacts/uploads": Row.UPLOADS,
    "HEAD /api/v1/artefacts/uploads/{upload_id}": Row.UPLOADS,
    "PATCH /api/v1/artefacts/uploads/{upload_id}": Row.UPLOADS,
    "DELETE /api/v1/artefacts/uploads/{upload_id}": Row.UPLOADS,
    "GET /api/v1/artefacts/by-digest/{digest}/content": Row.ONLY_NODES,
    "HEAD /api/v1/artefacts/by-digest/{digest}/content": Row.ONLY_NODES,
    "GET /api/v1/artefacts": Row.ARTEFACTS_READ,
    "GET /api/v1/artefacts/usage": Row.ARTEFACTS_READ,
    "GET /api/v1/artefacts/{artefact_id}": Row.ARTEFACTS_READ,
    "GET /api/v1/artefacts/{artefact_id}/content": Row.ARTEFACTS_READ,
    "HEAD /api/v1/artefacts/{artefact_id}/content": Row.ARTEFACTS_READ,
    "DELETE /api/v1/artefacts/{artefact_id}": Row.ARTEFACTS_WRITE,
    "GET /api/v1/models": Row.MODELS_READ,
    "GET /api/v1/models/{name}": Row.MODELS_READ,
    "POST /api/v1/models": Row.POOL_WRITE,
    "DELETE /api/v1/models/{name}": Row.POOL_WRITE,
    "GET /api/v1/marketplace/jobs": Row.JOBS_READ,
    "POST /api/v1/marketplace/jobs": Row.JOBS_ORDER,
    "GET /api/v1/marketplace/jobs/schema": Row.OPEN,
    "GET /api/v1/marketplace/jobs/{job_id}": Row.JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/quote": Row.JOBS_READ,
    "POST /api/v1/marketplace/jobs/{job_id}/confirm": Row.JOBS_ORDER,
    "GET /api/v1/marketplace/jobs/{job_id}/logs": Row.JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/resources": Row.JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/explanation": Row.JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/result": Row.JOBS_READ,
    "POST /api/v1/marketplace/jobs/{job_id}/cancel": Row.JOBS_WRITE,
    "POST /api/v1/marketplace/jobs/{job_id}/extend": Row.JOBS_WRITE,
    "GET /api/v1/marketplace/cluster/status": Row.OPEN,
    "GET /api/v1/marketplace/pricing": Row.OPEN,
    "GET /api/v1/marketplace/queue": Row.OPEN,
    "GET /api/v1/admin/accounts": Row.POOL_READ,
    "GET /api/v1/admin/accounts/{account_id}": Row.POOL_READ,
    "POST /api/v1/admin/accounts/{account_id}/block": Row.POOL_IN_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/unblock": Row.POOL_IN_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/roles": Row.POOL_FRESH,
    "POST /api/v1/admin/accounts/{account_id}/kyc": Row.POOL_IN_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/second-factor/remove": Row.POOL_FRESH,
    "GET /api/v1/admin/switches": Row.POOL_READ,
    "POST /api/v1/admin/switches/{name}/stop": Row.POOL_WRITE,
    "POST /api/v1/admin/switches/{name}/start": Row.POOL_WRITE,
    "GET /api/v1/admin/processes": Row.POOL_READ,
    "GET /api/v1/admin/reviews": Row.POOL_READ,
    "POST /api/v1/admin/reviews/{attempt_id}/decide": Row.POOL_WRITE,
    "POST /api/v1/admin/settings/{name}/approve": Row.POOL_IN_PERSON,
    "POST /api/v1/admin/settings/{name}/reject": Row.POOL_IN_PERSON,
    "GET /api/v1/ledger/accounts": Row.POOL_READ,
    "GET /api/v1/ledger/accounts/{account_id}": Row.POOL_READ,
    "GET /api/v1/ledger/accounts/{account_id}/statement": Row.POOL_READ,
    "GET /api/v1/ledger/accounts/{account_id}/statement.csv": Row.POOL_READ,
    "POST /api/v1/ledger/accounts/{account_id}/freeze": Row.POOL_WRITE,
    "POST /api/v1/ledger/accounts/{account_id}/unfreeze": Row.POOL_WRITE,
    "GET /api/v1/ledger/holds": Row.POOL_READ,
    "GET /api/v1/ledger/adjustments": Row.POOL_READ,
    "POST /api/v1/ledger/adjustments": Row.POOL_WRITE,
    "POST /api/v1/ledger/adjustments/{adjustment_id}/approve": Row.POOL_IN_PERSON,
    "POST /api/v1/ledger/adjustments/{adjustment_id}/reject": Row.POOL_IN_PERSON,
}

_EVERYBODY, _OPERATOR = frozenset(Role), frozenset({Role.OPERATOR})
SAYS: dict[Row, RouteRule] = {
    Row.UNGUARDED: RouteRule(None, ObjectScope.NOBODYS, None, fresh=False, before_set_up=True, unguarded=True),
    Row.ALWAYS_OPEN: RouteRule(None, ObjectScope.NOBODYS, None, fresh=False, before_set_up=True, unguarded=False),
    Row.OPEN: RouteRule(None, ObjectScope.NOBODYS, None, fresh=False, before_set_up=False, unguarded=False),
    Row.EVENTS: RouteRule(None, ObjectScope.OWN, Scope.EVENTS_READ, fresh=False, before_set_up=False, unguarded=False),
    Row.OWN: RouteRule(_EVERYBODY, ObjectScope.OWN, None, fresh=False, before_set_up=False, unguarded=False),
    Row.OWN_FRESH: RouteRule(_EVERYBODY, ObjectScope.OWN, None, fresh=True, before_set_up=False, unguarded=False),
    Row.OWN_PROVIDER: RouteRule(frozenset({Role.PROVIDER}), ObjectScope.OWN, None, fresh=False),
    Row.OWN_READ: RouteRule(_EVERYBODY, ObjectScope.OWN, Scope.ACCOUNT_READ, fresh=False),
    Row.TOKENS_READ: RouteRule(_EVERYBODY, ObjectScope.OWN, Scope.NODES_READ, fresh=False),
    Row.TOKENS_WRITE: RouteRule(_EVERYBODY, ObjectScope.OWN, Scope.NODES_WRITE, fresh=False),
    Row.NODES_READ: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.NODES_READ, fresh=False),
    Row.NODES_WRITE: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.NODES_WRITE, fresh=False),
    Row.ARTEFACTS_READ: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.ARTEFACTS_READ, fresh=False),
    Row.ARTEFACTS_WRITE: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.ARTEFACTS_WRITE, fresh=False),
    Row.UPLOADS: RouteRule(_EVERYBODY, ObjectScope.OWN, Scope.ARTEFACTS_WRITE, fresh=False, nodes=True),
    Row.ONLY_NODES: RouteRule(frozenset(), ObjectScope.NOBODYS, None, fresh=False, nodes=True),
    Row.MODELS_READ: RouteRule(_EVERYBODY, ObjectScope.ALL, Scope.ARTEFACTS_READ, fresh=False),
    Row.JOBS_READ: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.JOBS_READ, fresh=False),
    Row.JOBS_WRITE: RouteRule(_EVERYBODY, ObjectScope.OWN_OR_ALL, Scope.JOBS_WRITE, fresh=False),
    Row.JOBS_ORDER: RouteRule(_EVERYBODY, ObjectScope.OWN, Scope.JOBS_WRITE, fresh=False),
    Row.METRICS: RouteRule(_OPERATOR, ObjectScope.ALL, Scope.METRICS_READ, before_set_up=True),
    Row.POOL_READ: RouteRule(_OPERATOR, ObjectScope.ALL, Scope.POOL_READ, fresh=False),
    Row.POOL_WRITE: RouteRule(_OPERATOR, ObjectScope.ALL, Scope.POOL_WRITE, fresh=False),
    Row.POOL_IN_PERSON: RouteRule(_OPERATOR, ObjectScope.ALL, None, fresh=False),
    Row.POOL_FRESH: RouteRule(_OPERATOR, ObjectScope.ALL, None, fresh=True),
}
"""The same rows in the product's own form."""

POOL_ROWS = {Row.METRICS, Row.POOL_READ, Row.POOL_WRITE, Row.POOL_IN_PERSON, Row.POOL_FRESH}
SHARED_ROWS = {
    *(Row.NODES_READ, Row.NODES_WRITE, Row.ARTEFACTS_READ, Row.ARTEFACTS_WRITE, Row.MODELS_READ),
    *(Row.JOBS_READ, Row.JOBS_WRITE),
}
"""What acts on one's own objects, and for operators on all; and what everybody may see."""

NODES_TOO = {Row.UPLOADS, Row.ONLY_NODES}
"""Where a node's pass is good."""

NARROWED = {"key", "scraper"}
"""What is good only for its scopes."""

SCOPES = {
    Row.OWN_READ: Scope.ACCOUNT_READ,
    Row.TOKENS_READ: Scope.NODES_READ,
    Row.TOKENS_WRITE: Scope.NODES_WRITE,
    Row.NODES_READ: Scope.NODES_READ,
    Row.NODES_WRITE: Scope.NODES_WRITE,
    Row.ARTEFACTS_READ: Scope.ARTEFACTS_READ,
    Row.ARTEFACTS_WRITE: Scope.ARTEFACTS_WRITE,
    Row.UPLOADS: Scope.ARTEFACTS_WRITE,
    Row.MODELS_READ: Scope.ARTEFACTS_READ,
    Row.JOBS_READ: Scope.JOBS_READ,
    Row.JOBS_WRITE: Scope.JOBS_WRITE,
    Row.JOBS_ORDER: Scope.JOBS_WRITE,
    Row.METRICS: Scope.METRICS_READ,
    Row.POOL_READ: Scope.POOL_READ,
    Row.POOL_WRITE: Scope.POOL_WRITE,
}
EFFECTS = {
    "POST /api/v1/auth/logout",
    "POST /api/v1/account/delete",
    "POST /api/v1/account/kyc",
    "POST /api/v1/account/sessions/end-others",
    "POST /api/v1/account/second-factor",
    "POST /api/v1/account/second-factor/recovery-codes",
}
"""Routes that ask for nothing and so do something: each try has a caller of its own."""

REFUSALS = {
    *("unauthenticated", "second_factor_required", "operator_only", "role_missing", "session_needed", "scope_missing"),
    *(
        "fresh_login_needed",
        "not_for_nodes",
        "node_only",
        "pass_malformed",
        "pass_wrong",
        "token_wrong",
        "token_unknown",
        "session_over",
        "key_unknown",
        "key_not_from_here",
    ),
    *("account_blocked", "pool_not_set_up", "foreign_page", "rate_limited"),
}
"""What only the guard says; whoever hears something else was let in."""


@dataclass(frozen=True)
class Kind:
    """A kind of caller. `broken` is what everybody hears whose credentials are no good, wherever they ask."""

    how: str
    roles: frozenset[Role] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    two_factors: bool = False
    fresh: bool = True
    broken: str | None = None


def session(*roles: Role, **changed: Any) -> Kind:
    return replace(Kind("session", frozenset(roles)), **changed)


def key(role: Role, *scopes: Scope, **changed: Any) -> Kind:
    return replace(Kind("key", frozenset({role}), frozenset(scopes)), **changed)


KINDS = {
    "a stranger": Kind("nothing"),
    "a wrong token": Kind("token", broken="token_unknown"),
    "another scheme": Kind("basic", broken="token_wrong"),
    "a customer": session(Role.CUSTOMER),
    "a customer whose password is not fresh": session(Role.CUSTOMER, fresh=False),
    "a provider": session(Role.PROVIDER),
    "a customer and provider": session(Role.CUSTOMER, Role.PROVIDER),
    "a data centre": session(Role.DATA_CENTRE),
    "an operator with one factor": session(Role.OPERATOR),
    "an operator": session(Role.OPERATOR, two_factors=True),
    "an operator whose password is not fresh": session(Role.OPERATOR, two_factors=True, fresh=False),
    "everybody in one": session(*Role, two_factors=True),
    "a customer with two factors": session(Role.CUSTOMER, two_factors=True),
    "a customer's key for the account": key(Role.CUSTOMER, Scope.ACCOUNT_READ),
    "a customer's key for events": key(Role.CUSTOMER, Scope.EVENTS_READ),
    "a customer's key with scopes it could not get": key(Role.CUSTOMER, *Scope),
    "a provider's key": key(Role.PROVIDER, Scope.ACCOUNT_READ),
    "a provider's key that looks at nodes": key(Role.PROVIDER, Scope.NODES_READ),
    "a provider's key that changes nodes": key(Role.PROVIDER, Scope.NODES_WRITE),
    "a data centre's key": key(Role.DATA_CENTRE, Scope.ACCOUNT_READ, Scope.EVENTS_READ),
    "an operator's key for the account": key(Role.OPERATOR, Scope.ACCOUNT_READ),
    "an operator's key for events": key(Role.OPERATOR, Scope.EVENTS_READ),
    "an operator's key for metrics": key(Role.OPERATOR, Scope.METRICS_READ),
    "whoever has the metrics token": Kind("scraper", frozenset({Role.OPERATOR}), frozenset({Scope.METRICS_READ})),
    "an operator's key that reads": key(Role.OPERATOR, Scope.POOL_READ),
    "an operator's key that writes": key(Role.OPERATOR, Scope.POOL_WRITE),
    "a customer's key that looks at artefacts": key(Role.CUSTOMER, Scope.ARTEFACTS_READ),
    "a customer's key that changes artefacts": key(Role.CUSTOMER, Scope.ARTEFACTS_WRITE),
    "a customer's key that looks at jobs": key(Role.CUSTOMER, Scope.JOBS_READ),
    "a customer's key that orders jobs": key(Role.CUSTOMER, Scope.JOBS_WRITE),
    "a node": Kind("pass"),
    "a wrong pass": Kind("false pass", broken="pass_wrong"),
    "the home": Kind("home", frozenset({Role.OPERATOR})),
    "a blocked account's key": key(Role.OPERATOR, *Scope, broken="account_blocked"),
    "a blocked account's session": session(Role.CUSTOMER, broken="session_over"),
    "a revoked key": key(Role.CUSTOMER, *Scope, broken="key_unknown"),
    "a key whose time is over": key(Role.CUSTOMER, *Scope, broken="key_unknown"),
    "a key for another network": key(Role.CUSTOMER, *Scope, broken="key_not_from_here"),
}


def expected(row: Row, kind: Kind) -> str | None:
    """What the guard says, worked out from the two tables above; nothing for who is let in."""
    if row is Row.UNGUARDED:
        return None
    if kind.broken or kind.how == "pass":
        return kind.broken or (None if row in NODES_TOO else "not_for_nodes")
    if row in (Row.OPEN, Row.ALWAYS_OPEN):
        return None
    if row is Row.EVENTS:
        return "scope_missing" if kind.how in NARROWED and Scope.EVENTS_READ not in kind.scopes else None
    if kind.how == "nothing":
        return "unauthenticated"
    return _role(row, kind) or _narrowing(row, kind)


def _role(row: Row, kind: Kind) -> str | None:
    if row is Row.ONLY_NODES:
        return "node_only"
    if row in POOL_ROWS and Role.OPERATOR not in kind.roles:
        return "operator_only"
    if row is Row.OWN_PROVIDER and Role.PROVIDER not in kind.roles:
        return "role_missing"
    one_factor = kind.how == "session" and not kind.two_factors
    return "second_factor_required" if row in POOL_ROWS and one_factor else None


def _narrowing(row: Row, kind: Kind) -> str | None:
    if kind.how in NARROWED and row not in SCOPES:
        return "session_needed"
    if kind.how in NARROWED:
        return None if SCOPES[row] in kind.scopes else "scope_missing"
    if kind.how == "home" and row not in POOL_ROWS | SHARED_ROWS:
        return "session_needed"
    return "fresh_login_needed" if row in (Row.OWN_FRESH, Row.POOL_FRESH) and not kind.fresh else None


@dataclass
class Door:
    """A pool, its people, and one connection to it."""

    running: Running
    people: People
    client: httpx2.Client
    before: dict[tuple[str, str], str]

    def ask(self, route: str, headers: dict[str, str], **ids: str) -> httpx2.Response:
        """A request that nobody could do anything with: what it lacks is looked at behind the guard."""
        method, path = route.split()
        kinds = ("account", "session", "key", "adjustment", "node", "token", "artefact", "upload", "job", "attempt")
        names = {**{f"{kind}_id": NOBODY for kind in kinds}, "digest": "0" * 64, **ids}
        url = self.running.url + path.format(name="payouts", **names)
        body: Any = [] if method == "POST" else None
        return self.client.request(method, url, json=body, headers={"Accept": "application/json", **headers})

    def show(self, name: str) -> dict[str, str]:
        """What a caller of this kind shows, made anew."""
        kind = KINDS[name]
        match kind.how:
            case "nothing":
                return {}
            case "token":
                return bearer("wrong")
            case "basic":
                return {"Authorization": "Basic b3BlcmF0b3I6"}
            case "home" | "scraper":
                file = "operator.token" if kind.how == "home" else "metrics.token"
                return bearer((self.running.home / file).read_text().strip())
            case "pass" | "false pass":
                machine = self.people.machine(self.people.person(Role.PROVIDER))
                return (machine if kind.how == "pass" else replace(machine, identity=Identity(bytes(32)))).shown()
        person = self.people.person(*kind.roles, second_factor=kind.two_factors)
        return self._session(name, kind, person) if kind.how == "session" else self._key(name, kind, person)

    def cookie(self, shown: dict[str, str]) -> dict[str, str]:
        """The same token as a browser on the pool's own page sends it."""
        token = shown["Authorization"].removeprefix("Bearer ")
        return {"Cookie": f"tidemill_access={token}", "Origin": self.running.url}

    def _session(self, name: str, kind: Kind, person: Person) -> dict[str, str]:
        opened = self.people.session(person, age_s=0 if kind.fresh else 700)
        if "blocked" in name:
            self.people.block(person)
        return opened.bearer

    def _key(self, name: str, kind: Kind, person: Person) -> dict[str, str]:
        changed: dict[str, Any] = {}
        if "another network" in name:
            changed = {"networks": ("198.51.100.0/24", "2001:db8::/32")}
        if "time is over" in name:
            changed = {"expires_at": Instant(1)}
        (role,) = kind.roles
        made = self.people.key(person, role, *kind.scopes, **changed)
        if "revoked" in name:
            self.people.revoke(person, made)
        if "blocked" in name:
            self.people.block(person)
        return made.bearer


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with reachable_directory() as home, pool_in(home, **MANY) as pool, httpx2.Client(timeout=10) as client:
        running = pool.up()
        running.until_ready()
        with people_of(running) as people:
            door = Door(running, people, client, {})
            door.before = {
                (route, name): code_of(door.ask(route, door.show(name)))
                for route in ROWS
                for name in ("a stranger", "the home")
            }
            running.set_up()
            yield door


def test_every_route_has_a_row_here_and_in_the_product() -> None:
    routes = create_api().routes
    guarded = [route for route in routes if isinstance(route, GuardedRoute)]
    served = [f"{method} {route.path}" for route in guarded for method in route.methods or ()]
    assert len(guarded) == len(routes), "a route that no guard stands before"
    assert len(served) == len(routes), "a route takes one method, because it has one row"
    assert sorted(served) == sorted(ROWS), "list each route here, and say who may use it"
    assert {route: SAYS[row] for route, row in ROWS.items()} == RULES


@pytest.mark.parametrize("name", KINDS)
def test_the_guard_does_what_the_table_says(door: Door, name: str) -> None:
    shown = door.show(name)
    wrong = []
    for route, row in ROWS.items():
        answer = door.ask(route, door.show(name) if route in EFFECTS else shown)
        code, due = code_of(answer), expected(row, KINDS[name])
        let_in = code not in REFUSALS and answer.status_code < 500
        if code != due if due else not let_in:
            wrong.append(f"{route}: {answer.status_code} {code}, not {due or 'let in'}")
    assert wrong == []


def test_a_cookie_does_what_its_session_may_and_a_stale_one_keeps_nobody_from_what_is_open(door: Door) -> None:
    kind, stale = KINDS["a customer"], door.show("a blocked account's session")
    for route, row in ROWS.items():
        good = door.ask(route, door.cookie(door.show("a customer")))
        due = expected(row, kind)
        assert code_of(good) == due if due else code_of(good) not in REFUSALS, route
        is_open = row in (Row.UNGUARDED, Row.ALWAYS_OPEN, Row.OPEN, Row.EVENTS)
        over = code_of(door.ask(route, door.cookie(stale)))
        assert over not in REFUSALS if is_open else over == "session_over", route


def test_before_the_set_up_only_the_owner_of_the_home_is_let_in(door: Door) -> None:
    for route, row in ROWS.items():
        stranger, home = door.before[route, "a stranger"], door.before[route, "the home"]
        closed = {Row.OPEN, Row.EVENTS}
        assert stranger == "pool_not_set_up" if row in closed else stranger != "pool_not_set_up", route
        due = expected(row, KINDS["the home"])
        assert home == due if due else home not in REFUSALS, route


@pytest.mark.parametrize("route", [route for route, row in ROWS.items() if "_id}" in route and row in POOL_ROWS])
def test_who_may_not_see_an_object_cannot_tell_whether_it_exists(door: Door, route: str) -> None:
    there = door.people.person()
    for name in ("a stranger", "a customer", "a data centre's key", "an operator with one factor"):
        shown = door.show(name)
        found, missing = door.ask(route, shown, account_id=str(there.id)), door.ask(route, shown)
        assert without_id(found) == without_id(missing)
        assert found.status_code in (401, 403)


@pytest.mark.parametrize("name", ["a customer", "an operator", "everybody in one"])
def test_another_accounts_object_is_a_missing_object(door: Door, name: str) -> None:
    owner = door.people.person()
    session_id, made = door.people.session(owner).id, door.people.key(owner, Role.CUSTOMER, Scope.ACCOUNT_READ)
    for route in (route for route in ROWS if "{session_id}" in route or "{key_id}" in route):
        shown = door.show(name)
        ids = {"session_id": str(session_id), "key_id": str(made.id)}
        foreign, missing = door.ask(route, shown, **ids), door.ask(route, shown)
        assert without_id(foreign) == without_id(missing), route
        assert (foreign.status_code, code_of(foreign) in ("unknown_session", "unknown_key")) == (404, True), route
    assert door.client.get(door.running.url + "/api/v1/account", headers=made.bearer).status_code == 200
    listed = door.client.get(door.running.url + "/api/v1/account/sessions", headers=made.bearer).json()["items"]
    assert [one["id"] for one in listed] == [str(session_id)]


def test_lists_hold_only_ones_own(door: Door) -> None:
    one, other = door.people.person(), door.people.person()
    kept = {person.id: (door.people.session(person), _reading(door, person)) for person in (one, other)}
    for person in (one, other):
        opened, made = kept[person.id]
        shown = opened.bearer
        assert _get(door, "/account", shown)["account"]["id"] == str(person.id)
        assert [item["id"] for item in _get(door, "/account/sessions", shown)["items"]] == [str(opened.id)]
        assert [item["id"] for item in _get(door, "/account/keys", shown)["items"]] == [str(made)]
        assert _get(door, "/account/logins", shown)["items"] == []


def test_events_are_told_to_whom_they_concern(door: Door) -> None:
    one, other = door.people.person(), door.people.person()
    own = door.people.session(one).bearer
    door.people.session(other)

    def told(shown: dict[str, str]) -> set[str]:
        items: list[Any] = []
        after, more = "start", True
        while more:
            page = _get(door, f"/events?limit=500&after={after}", shown)
            items, after, more = items + page["items"], page["after"], page["has_more"]
        return {item["subject"] for item in items if item["subject"].startswith("account:")}

    both = {f"account:{one.id}", f"account:{other.id}"}
    lone = door.people.person(Role.OPERATOR)
    alone = door.people.session(lone).bearer
    for shown in (door.show("an operator"), door.show("an operator's key for events"), door.running.operator):
        until(lambda shown=shown: told(shown) >= both, "operators are told of everybody")  # type: ignore[misc]
    until(lambda: told(own) == {f"account:{one.id}"}, "an owner is told of themselves")
    until(lambda: told(alone) == {f"account:{lone.id}"}, "one factor makes no operator")
    assert told({}) == set()


def _reading(door: Door, person: Person) -> UUID:
    return door.people.key(person, Role.CUSTOMER, Scope.ACCOUNT_READ).id


def _get(door: Door, path: str, headers: dict[str, str]) -> Any:
    answer = door.client.get(f"{door.running.url}/api/v1{path}", headers={"Accept": "application/json", **headers})
    assert answer.status_code == 200, answer.text
    return answer.json()


def without_id(answer: httpx2.Response) -> tuple[int, Any]:
    """An answer but for what names the request."""
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "request_id"}
