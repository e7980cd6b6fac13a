"""Who may do what on whose object: one table. A route without a row here cannot be served.

`whose` says on which objects a caller may act: OWN answers for another account's object as if it did not exist;
OWN_OR_ALL does so for everybody but operators. `scope` is what an API key needs; without one, no key may use the route.
`fresh` asks for a password typed lately. `nodes` lets nodes in, with a pass of their own that works nowhere else.
Unguarded routes look at no credentials and count for no limit: they cost nothing and tell nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from tidemill.core.accounts.roles import Caller, Credential, Role, Scope
from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal


class PermissionRefusal(Refusal):
    """Why a caller may not do what they ask, in the order of the checks."""

    UNAUTHENTICATED = (
        "Log in first, or send a token or an API key as `Authorization: Bearer …`; on the pool's own machine "
        "operator.token in its home will do."
    )
    NOT_FOR_NODES = "A node cannot do this with its pass: ask as its owner, with a token or an API key."
    NODE_ONLY = "Only a node may do this, with a pass of its own: ask for the artefact by its id instead."
    SECOND_FACTOR_REQUIRED = "Operators use a second factor: switch it on under your account, then log in again."
    OPERATOR_ONLY = "Only an operator may do this."
    ROLE_MISSING = (
        "Your account has no role that may do this: take it on with `tidemill account become`, or ask an operator."
    )
    SESSION_NEEDED = "An API key cannot do this: log in with your password."
    SCOPE_MISSING = "This API key was not made for this: make one with the scope that the reference names."
    FRESH_LOGIN_NEEDED = "Enter your password again (POST /api/v1/auth/reauthenticate), then repeat this."


class ObjectScope(Enum):
    """On which objects a route acts."""

    NOBODYS = "nobody's"
    OWN = "own"
    OWN_OR_ALL = "own; all for an operator"
    ALL = "all"


@dataclass(frozen=True)
class RouteRule:
    """One row of the table. Without roles everybody may use the route, strangers included."""

    roles: frozenset[Role] | None
    whose: ObjectScope
    scope: Scope | None = None
    fresh: bool = False
    before_set_up: bool = False
    unguarded: bool = False
    nodes: bool = False


_ANY_ACCOUNT = frozenset(Role)
_OPERATORS = frozenset({Role.OPERATOR})

PLAIN = RouteRule(None, ObjectScope.NOBODYS, before_set_up=True, unguarded=True)
OPEN = RouteRule(None, ObjectScope.NOBODYS)
ALWAYS_OPEN = RouteRule(None, ObjectScope.NOBODYS, before_set_up=True)
OWN = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN)
OWN_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, Scope.ACCOUNT_READ)
OWN_FRESH = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, fresh=True)
TOKENS_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, Scope.NODES_READ)
TOKENS_WRITE = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, Scope.NODES_WRITE)
NODES_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.NODES_READ)
NODES_WRITE = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.NODES_WRITE)
ARTEFACTS_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.ARTEFACTS_READ)
ARTEFACTS_WRITE = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.ARTEFACTS_WRITE)
UPLOADS = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, Scope.ARTEFACTS_WRITE, nodes=True)
ONLY_NODES = RouteRule(frozenset(), ObjectScope.NOBODYS, nodes=True)
JOBS_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.JOBS_READ)
JOBS_WRITE = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN_OR_ALL, Scope.JOBS_WRITE)
JOBS_ORDER = RouteRule(_ANY_ACCOUNT, ObjectScope.OWN, Scope.JOBS_WRITE)
MODELS_READ = RouteRule(_ANY_ACCOUNT, ObjectScope.ALL, Scope.ARTEFACTS_READ)
METRICS = RouteRule(_OPERATORS, ObjectScope.ALL, Scope.METRICS_READ, before_set_up=True)
OPERATOR_READ = RouteRule(_OPERATORS, ObjectScope.ALL, Scope.POOL_READ)
OPERATOR_WRITE = RouteRule(_OPERATORS, ObjectScope.ALL, Scope.POOL_WRITE)
OPERATOR_PERSON = RouteRule(_OPERATORS, ObjectScope.ALL)
OPERATOR_FRESH = RouteRule(_OPERATORS, ObjectScope.ALL, fresh=True)

RULES: Mapping[str, RouteRule] = {
    "GET /": PLAIN,
    "GET /account": PLAIN,
    "GET /confirm": PLAIN,
    "GET /forgot": PLAIN,
    "GET /login": PLAIN,
    "GET /pages/{name}": PLAIN,
    "GET /register": PLAIN,
    "GET /reset": PLAIN,
    "GET /setup": PLAIN,
    "GET /healthz": PLAIN,
    "GET /readyz": PLAIN,
    "GET /api/v1/openapi.json": ALWAYS_OPEN,
    "GET /metrics": METRICS,
    "POST /api/v1/setup": ALWAYS_OPEN,
    "GET /api/v1/events": RouteRule(None, ObjectScope.OWN, Scope.EVENTS_READ),
    # Authentication
    "POST /api/v1/auth/register": OPEN,
    "POST /api/v1/auth/confirm": OPEN,
    "POST /api/v1/auth/login": OPEN,
    "POST /api/v1/auth/refresh": OPEN,
    "POST /api/v1/auth/forgot": OPEN,
    "POST /api/v1/auth/reset": OPEN,
    "GET /api/v1/auth/check": OWN_READ,
    "POST /api/v1/auth/logout": OWN,
    "POST /api/v1/auth/reauthenticate": OWN,
    # The caller's own account
    "GET /api/v1/account": OWN_READ,
    "POST /api/v1/account/delete": OWN_FRESH,
    "POST /api/v1/account/password": OWN_FRESH,
    "POST /api/v1/account/address": OWN_FRESH,
    "POST /api/v1/account/language": OWN,
    "POST /api/v1/account/roles": OWN_FRESH,
    "POST /api/v1/account/kyc": RouteRule(frozenset({Role.PROVIDER}), ObjectScope.OWN),
    "GET /api/v1/account/logins": OWN_READ,
    "GET /api/v1/account/sessions": OWN_READ,
    "POST /api/v1/account/sessions/end-others": OWN,
    "DELETE /api/v1/account/sessions/{session_id}": OWN,
    "POST /api/v1/account/second-factor": OWN_FRESH,
    "POST /api/v1/account/second-factor/confirm": OWN_FRESH,
    "POST /api/v1/account/second-factor/recovery-codes": OWN_FRESH,
    "POST /api/v1/account/second-factor/remove": OWN_FRESH,
    "GET /api/v1/account/keys": OWN_READ,
    "POST /api/v1/account/keys": OWN_FRESH,
    "POST /api/v1/account/keys/{key_id}/rotate": OWN_FRESH,
    "DELETE /api/v1/account/keys/{key_id}": OWN,
    # Nodes
    "GET /api/v1/nodes/join-tokens": TOKENS_READ,
    "POST /api/v1/nodes/join-tokens": TOKENS_WRITE,
    "DELETE /api/v1/nodes/join-tokens/{token_id}": TOKENS_WRITE,
    "GET /api/v1/nodes": NODES_READ,
    "GET /api/v1/nodes/{node_id}": NODES_READ,
    "GET /api/v1/nodes/{node_id}/history": NODES_READ,
    "GET /api/v1/nodes/{node_id}/telemetry": NODES_READ,
    "GET /api/v1/nodes/{node_id}/considered": NODES_READ,
    "PATCH /api/v1/nodes/{node_id}": NODES_WRITE,
    "DELETE /api/v1/nodes/{node_id}": NODES_WRITE,
    "PUT /api/v1/nodes/{node_id}/rules": NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/drain": NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/pause": NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/resume": NODES_WRITE,
    "POST /api/v1/nodes/{node_id}/suspend": OPERATOR_WRITE,
    "POST /api/v1/nodes/{node_id}/unsuspend": OPERATOR_WRITE,
    # Artefacts
    "OPTIONS /api/v1/artefacts/uploads": OPEN,
    "POST /api/v1/artefacts/uploads": UPLOADS,
    "HEAD /api/v1/artefacts/uploads/{upload_id}": UPLOADS,
    "PATCH /api/v1/artefacts/uploads/{upload_id}": UPLOADS,
    "DELETE /api/v1/artefacts/uploads/{upload_id}": UPLOADS,
    "GET /api/v1/artefacts/by-digest/{digest}/content": ONLY_NODES,
    "HEAD /api/v1/artefacts/by-digest/{digest}/content": ONLY_NODES,
    "GET /api/v1/artefacts": ARTEFACTS_READ,
    "GET /api/v1/artefacts/usage": ARTEFACTS_READ,
    "GET /api/v1/artefacts/{artefact_id}": ARTEFACTS_READ,
    "GET /api/v1/artefacts/{artefact_id}/content": ARTEFACTS_READ,
    "HEAD /api/v1/artefacts/{artefact_id}/content": ARTEFACTS_READ,
    "DELETE /api/v1/artefacts/{artefact_id}": ARTEFACTS_WRITE,
    "GET /api/v1/models": MODELS_READ,
    "GET /api/v1/models/{name}": MODELS_READ,
    "POST /api/v1/models": OPERATOR_WRITE,
    "DELETE /api/v1/models/{name}": OPERATOR_WRITE,
    # Jobs
    "GET /api/v1/marketplace/jobs": JOBS_READ,
    "POST /api/v1/marketplace/jobs": JOBS_ORDER,
    "GET /api/v1/marketplace/jobs/schema": OPEN,
    "GET /api/v1/marketplace/jobs/{job_id}": JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/quote": JOBS_READ,
    "POST /api/v1/marketplace/jobs/{job_id}/confirm": JOBS_ORDER,
    "GET /api/v1/marketplace/jobs/{job_id}/logs": JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/resources": JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/explanation": JOBS_READ,
    "GET /api/v1/marketplace/jobs/{job_id}/result": JOBS_READ,
    "POST /api/v1/marketplace/jobs/{job_id}/cancel": JOBS_WRITE,
    "POST /api/v1/marketplace/jobs/{job_id}/extend": JOBS_WRITE,
    "GET /api/v1/marketplace/cluster/status": OPEN,
    "GET /api/v1/marketplace/pricing": OPEN,
    "GET /api/v1/marketplace/queue": OPEN,
    # The pool
    "GET /api/v1/admin/accounts": OPERATOR_READ,
    "GET /api/v1/admin/accounts/{account_id}": OPERATOR_READ,
    "POST /api/v1/admin/accounts/{account_id}/block": OPERATOR_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/unblock": OPERATOR_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/roles": OPERATOR_FRESH,
    "POST /api/v1/admin/accounts/{account_id}/kyc": OPERATOR_PERSON,
    "POST /api/v1/admin/accounts/{account_id}/second-factor/remove": OPERATOR_FRESH,
    "GET /api/v1/admin/switches": OPERATOR_READ,
    "POST /api/v1/admin/switches/{name}/stop": OPERATOR_WRITE,
    "POST /api/v1/admin/switches/{name}/start": OPERATOR_WRITE,
    "GET /api/v1/admin/processes": OPERATOR_READ,
    "POST /api/v1/admin/settings/{name}/approve": OPERATOR_PERSON,
    "POST /api/v1/admin/settings/{name}/reject": OPERATOR_PERSON,
    "GET /api/v1/admin/reviews": OPERATOR_READ,
    "POST /api/v1/admin/reviews/{attempt_id}/decide": OPERATOR_WRITE,
    # The audit trail
    "GET /api/v1/audit/head": OPEN,
    "GET /api/v1/audit": OPERATOR_READ,
    # The ledger
    "GET /api/v1/ledger/accounts": OPERATOR_READ,
    "GET /api/v1/ledger/accounts/{account_id}": OPERATOR_READ,
    "GET /api/v1/ledger/accounts/{account_id}/statement": OPERATOR_READ,
    "GET /api/v1/ledger/accounts/{account_id}/statement.csv": OPERATOR_READ,
    "POST /api/v1/ledger/accounts/{account_id}/freeze": OPERATOR_WRITE,
    "POST /api/v1/ledger/accounts/{account_id}/unfreeze": OPERATOR_WRITE,
    "GET /api/v1/ledger/holds": OPERATOR_READ,
    "GET /api/v1/ledger/adjustments": OPERATOR_READ,
    "POST /api/v1/ledger/adjustments": OPERATOR_WRITE,
    "POST /api/v1/ledger/adjustments/{adjustment_id}/approve": OPERATOR_PERSON,
    "POST /api/v1/ledger/adjustments/{adjustment_id}/reject": OPERATOR_PERSON,
}


def why_forbidden(rule: RouteRule, caller: Caller, now: Instant, fresh_us: int) -> PermissionRefusal | None:
    """Why this caller may not use a route with this rule; None if they may."""
    if caller.credential is Credential.NODE:
        return None if rule.nodes else PermissionRefusal.NOT_FOR_NODES
    if rule.roles is None:
        return _narrowed(rule, caller)
    if caller.credential is Credential.NOTHING:
        return PermissionRefusal.UNAUTHENTICATED
    if refusal := _role_missing(rule.roles, caller) or _narrowed(rule, caller):
        return refusal
    if rule.whose is ObjectScope.OWN and caller.account_id is None:
        return PermissionRefusal.SESSION_NEEDED
    stale = rule.fresh and caller.credential is Credential.SESSION and now - caller.fresh_at > fresh_us
    return PermissionRefusal.FRESH_LOGIN_NEEDED if stale else None


def whose_objects(rule: RouteRule, caller: Caller) -> UUID | None:
    """The account among whose objects the caller finds those that they name; None is everybody's."""
    if rule.whose is ObjectScope.ALL or (rule.whose is ObjectScope.OWN_OR_ALL and caller.is_operator):
        return None
    assert caller.account_id, "the guard lets only accounts act on what is their own"
    return caller.account_id


def _role_missing(roles: frozenset[Role], caller: Caller) -> PermissionRefusal | None:
    if not roles:
        return PermissionRefusal.NODE_ONLY
    if not roles & caller.roles:
        return PermissionRefusal.OPERATOR_ONLY if roles == _OPERATORS else PermissionRefusal.ROLE_MISSING
    return PermissionRefusal.SECOND_FACTOR_REQUIRED if roles == _OPERATORS and not caller.is_operator else None


def _narrowed(rule: RouteRule, caller: Caller) -> PermissionRefusal | None:
    """What an API key may not do though its account may. Routes open to strangers are open to keys."""
    if caller.scopes is None or (rule.roles is None and rule.scope is None):
        return None
    if rule.scope is None:
        return PermissionRefusal.SESSION_NEEDED
    return None if rule.scope in caller.scopes else PermissionRefusal.SCOPE_MISSING
