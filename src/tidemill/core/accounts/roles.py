"""Roles, and callers as the table of permissions sees them."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import EventReader

NEVER = Instant(0)
OPERATOR_FILE = "operator.token"
METRICS_FILE = "metrics.token"
"""The files in a pool's home whose tokens let callers in."""


_ACCOUNT = "account:"


def name_of_account(account_id: UUID) -> str:
    """What an account's owner is called in audits, whether they use a session or an API key."""
    return f"{_ACCOUNT}{account_id}"


def is_person(name: str) -> bool:
    """Whether a name stands for one account. The home's token and the machine's users are whoever gets at the machine:
    they may be the same person as any operator."""
    return name.startswith(_ACCOUNT)


def account_of_name(name: str) -> UUID | None:
    """The account that a name stands for, if it does."""
    return UUID(name.removeprefix(_ACCOUNT)) if is_person(name) else None


class Role(StrEnum):
    """What an account does in the pool. One account may hold several; an API key acts in one of them."""

    CUSTOMER = "customer"
    PROVIDER = "provider"
    DATA_CENTRE = "data_centre"
    OPERATOR = "operator"


CHOSEN_FREELY = frozenset({Role.CUSTOMER, Role.PROVIDER})
"""Roles that anybody may take on, where the pool's operators allow it; operators grant the others."""


class RolesByRequest(StrEnum):
    """Which roles people take on by themselves. Nobody becomes an operator or a data centre so."""

    BOTH = "both"
    CUSTOMER = "customer"
    PROVIDER = "provider"
    NONE = "none"

    @property
    def roles(self) -> frozenset[Role]:
        return CHOSEN_FREELY if self is RolesByRequest.BOTH else CHOSEN_FREELY & {self.value}


class Scope(StrEnum):
    """What an API key may be used for."""

    ACCOUNT_READ = "account:read"
    ARTEFACTS_READ = "artefacts:read"
    ARTEFACTS_WRITE = "artefacts:write"
    EVENTS_READ = "events:read"
    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    METRICS_READ = "metrics:read"
    NODES_READ = "nodes:read"
    NODES_WRITE = "nodes:write"
    POOL_READ = "pool:read"
    POOL_WRITE = "pool:write"


class Credential(StrEnum):
    """How a caller has shown who they are."""

    NOTHING = "nothing"
    SESSION = "session"
    KEY = "key"
    NODE = "node"  # a pass that a node has signed
    HOME = "home"  # a token in the pool's home, which only its owner can read


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whoever makes a call. `name` identifies them in audits and idempotency keys.

    `scopes` is None where nothing narrows them. `fresh_at` is when they last typed their password. A node has an id of
    its own and no account: it does not have its owner's rights.
    """

    name: str
    credential: Credential
    account_id: UUID | None = None
    roles: frozenset[Role] = frozenset()
    session_id: UUID | None = None
    key_id: UUID | None = None
    node_id: UUID | None = None
    scopes: frozenset[Scope] | None = None
    second_factor: bool = False
    fresh_at: Instant = NEVER

    @property
    def is_operator(self) -> bool:
        """Operators show two factors. Whoever made a key did; whoever reads the home controls the machine."""
        if Role.OPERATOR not in self.roles:
            return False
        return self.second_factor or self.credential is not Credential.SESSION

    @cached_property
    def bucket(self) -> str:
        """Whose bucket of requests they draw from: the key's own, or one for all sessions of an account."""
        return str(self.key_id or self.account_id or self.name)

    @cached_property
    def account_bucket(self) -> str:
        """The bucket that all keys and sessions of the account share."""
        return str(self.account_id or self.name)

    @property
    def reader(self) -> EventReader:
        """What they may read of the log of events."""
        return EventReader(self.is_operator, self.account_id)


STRANGER = Caller(name="stranger", credential=Credential.NOTHING)
HOME_OPERATOR = Caller(name="operator", credential=Credential.HOME, roles=frozenset({Role.OPERATOR}))
SCRAPER = Caller(
    name="scraper",
    credential=Credential.HOME,
    roles=frozenset({Role.OPERATOR}),
    scopes=frozenset({Scope.METRICS_READ}),
)
"""Whoever shows the metrics token: a monitoring system, which may read metrics and nothing else of the pool's."""
