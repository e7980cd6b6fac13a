"""Who is admitted to the link: known nodes by their key, newcomers by a join token, and nobody twice.

A caller has already shown that it has the key it names; this module decides what that key is worth. Callers are
decided in batches: each key gets one link from a batch, and a token admits no more than it may, however many ask at
once. A newcomer that asks again, because our welcome was lost, gets its own node again at no cost to its token.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from tidemill.core.accounts.roles import Role
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes import versions
from tidemill.core.nodes.join_tokens import JoinToken, JoinTokenRefusal, refused_join, refused_token_use
from tidemill.core.nodes.life import LifeRefusal, NodeLife
from tidemill.core.nodes.reports import events_allowed
from tidemill.core.refusals import Refusal

CLONE_TOLD_EVERY_US = 600 * SECOND
"""A clone calls again and again; its node's owner is told once per this interval."""

JOINED_A_DAY_MAX = 10_000
"""How many machines may join for one account in a day, removed ones included: each leaves traces for ever."""

_AGAIN_MS = 1_000


class AdmissionRefusal(Refusal):
    AGENT_MALFORMED = "This agent calls itself something that cannot be shown: install an agent of this project."
    NODE_UNKNOWN = "The pool does not know this node: join the machine again with a new token."
    NODE_KEY_WRONG = "This key is not the one that the node joined with: restore the agent's home, or join again."
    NODE_KEY_TAKEN = "Another owner's node has this key: run `tidemill agent leave`, then join again."
    NODE_OWNER_BLOCKED = "The account that made this token is blocked: its owner has to ask an operator of the pool."
    IDENTITY_IN_USE = (
        "Another machine with this node's identity is connected: stop it there, or join this machine with a token."
    )
    NEWER_HELLO = "This agent has called again since: that call is answered."
    TOO_MANY_JOINED = (
        f"An account joins at most {JOINED_A_DAY_MAX} machines in a day: wait until tomorrow with the others."
    )
    JOINED_AT_ONCE = "The same key is joining at this moment from elsewhere: try again."


@dataclass(frozen=True)
class Applicant:
    """What an agent says when it calls, and from where. A newcomer names no node, and shows a token."""

    key: bytes
    instance: UUID
    agent: str
    address: str
    node_id: UUID | None = None
    token_sha256: bytes | None = None


@dataclass(frozen=True)
class Owner:
    """The account that a node or a token belongs to, and how many machines it has joined in a day."""

    id: UUID
    roles: frozenset[Role]
    blocked: bool
    joined: int = 0


@dataclass(frozen=True)
class NodeAtDoor:
    """A node at the moment somebody shows its key. `has_link` says that a living process has its link, and
    `link_doubted` that the process has yet to show that it lives, since the database has just restarted. `told_until`
    is how far the node has used up its share of events: see core.nodes.reports. It is welcomed with its `rules`, in
    JSON, and has then been told as many `wishes`."""

    id: UUID
    account_id: UUID
    key: bytes
    life: NodeLife
    refused_agent: str | None
    cloned_at: Instant | None
    instance: UUID | None
    has_link: bool
    link_doubted: bool
    heard_at: Instant | None
    told_until: Instant | None
    rules: str
    wishes: int


@dataclass(frozen=True)
class AdmissionRecords:
    """What the database knows of a batch's callers: nodes by key, ids of existing nodes, tokens by hash."""

    nodes: Mapping[bytes, NodeAtDoor]
    node_ids: frozenset[UUID]
    tokens: Mapping[bytes, JoinToken]
    owners: Mapping[UUID, Owner]


@dataclass(frozen=True)
class DoorRules:
    """The settings of the pool that matter here."""

    beat_us: int
    oldest_agent: str

    @property
    def beat_ms(self) -> int:
        return self.beat_us // 1000


@dataclass(frozen=True)
class Admit:
    """Admit a known node."""

    node: NodeAtDoor
    version_accepted: bool
    tell_version: bool

    def told_until(self, now: Instant) -> Instant | None:
        """How far its share of events is used up then; None where nothing changes."""
        return events_allowed(1, self.node.told_until, now)[1] if self.tell_version else None


@dataclass(frozen=True)
class Register:
    """Register a newcomer as a node of the token's owner."""

    token: JoinToken
    version_accepted: bool


@dataclass(frozen=True)
class TurnAway:
    """Turn away for now, or for ever: then there is no time to wait. `cloned` is a node whose owner to tell."""

    refusal: Refusal
    node_id: UUID | None = None
    retry_ms: int | None = None
    cloned: NodeAtDoor | None = None


AdmissionDecision: TypeAlias = Admit | Register | TurnAway


def decide(
    applicants: Sequence[Applicant], records: AdmissionRecords, rules: DoorRules, now: Instant
) -> list[AdmissionDecision]:
    """One decision an applicant, in their order."""
    uses = Counter({token.id: token.uses for token in records.tokens.values()})
    uses.update({owner.id: owner.joined for owner in records.owners.values()})
    chosen = _chosen(applicants, records.nodes)
    decisions: list[AdmissionDecision] = []
    for position, applicant in enumerate(applicants):
        if position == chosen[applicant.key]:
            decision = _decided(applicant, records, uses, rules, now)
        else:
            decision = _crowded_out(applicant, applicants[chosen[applicant.key]], rules)
        if isinstance(decision, Register):
            uses.update((decision.token.id, decision.token.account_id))
        decisions.append(decision)
    return decisions


def _chosen(applicants: Sequence[Applicant], nodes: Mapping[bytes, NodeAtDoor]) -> dict[bytes, int]:
    """Choose one caller of each key: the newest call of the run that has the link, or else of the first run."""
    by_key: dict[bytes, dict[UUID, int]] = defaultdict(dict)
    for position, applicant in enumerate(applicants):
        by_key[applicant.key][applicant.instance] = position
    return {key: _newest(nodes.get(key), runs) for key, runs in by_key.items()}


def _newest(node: NodeAtDoor | None, runs: Mapping[UUID, int]) -> int:
    has_the_link = None if node is None or node.instance is None else runs.get(node.instance)
    return next(iter(runs.values())) if has_the_link is None else has_the_link


def _crowded_out(applicant: Applicant, winner: Applicant, rules: DoorRules) -> TurnAway:
    if winner.instance == applicant.instance:
        return TurnAway(AdmissionRefusal.NEWER_HELLO, applicant.node_id, _AGAIN_MS)
    return TurnAway(AdmissionRefusal.IDENTITY_IN_USE, applicant.node_id, rules.beat_ms)


def _decided(
    applicant: Applicant, records: AdmissionRecords, uses: Counter[UUID], rules: DoorRules, now: Instant
) -> AdmissionDecision:
    if not applicant.agent.isprintable():
        return TurnAway(AdmissionRefusal.AGENT_MALFORMED)
    node = records.nodes.get(applicant.key)
    if applicant.node_id is None:
        return _newcomer(applicant, node, records, uses, rules, now)
    if node is None or node.id != applicant.node_id:
        is_there = applicant.node_id in records.node_ids
        refusal = AdmissionRefusal.NODE_KEY_WRONG if is_there else AdmissionRefusal.NODE_UNKNOWN
        return TurnAway(refusal, applicant.node_id if is_there else None)
    return _known(applicant, node, rules, now)


def _newcomer(
    applicant: Applicant,
    node: NodeAtDoor | None,
    records: AdmissionRecords,
    uses: Counter[UUID],
    rules: DoorRules,
    now: Instant,
) -> AdmissionDecision:
    token = records.tokens.get(applicant.token_sha256 or b"")
    if token is None:
        return TurnAway(JoinTokenRefusal.JOIN_TOKEN_UNKNOWN)
    if node is not None and node.life is not NodeLife.DEREGISTERED and node.account_id != token.account_id:
        return TurnAway(AdmissionRefusal.NODE_KEY_TAKEN)
    if node is not None:
        return _known(applicant, node, rules, now)
    owner = records.owners[token.account_id]
    if refusal := (
        _objection_to(owner, uses[owner.id])
        or refused_token_use(token, uses[token.id], now)
        or refused_join(owner.roles, house=token.house)
    ):
        return TurnAway(refusal)
    return Register(token, versions.is_accepted(applicant.agent, rules.oldest_agent))


def _objection_to(owner: Owner, joined: int) -> AdmissionRefusal | None:
    if owner.blocked:
        return AdmissionRefusal.NODE_OWNER_BLOCKED
    return AdmissionRefusal.TOO_MANY_JOINED if joined >= JOINED_A_DAY_MAX else None


def _known(applicant: Applicant, node: NodeAtDoor, rules: DoorRules, now: Instant) -> AdmissionDecision:
    """A node of a blocked owner is admitted, too, to deliver what it has finished; it gets no new work."""
    if node.life is NodeLife.DEREGISTERED:
        return TurnAway(LifeRefusal.NODE_REMOVED, node.id)
    if _is_clone(applicant, node, rules, now):
        if node.link_doubted:
            return TurnAway(AdmissionRefusal.IDENTITY_IN_USE, node.id, _AGAIN_MS)
        recently_told = node.cloned_at is not None and now - node.cloned_at < CLONE_TOLD_EVERY_US
        cloned = None if recently_told else node
        return TurnAway(AdmissionRefusal.IDENTITY_IN_USE, node.id, rules.beat_ms, cloned)
    accepted = versions.is_accepted(applicant.agent, rules.oldest_agent)
    is_news = not accepted and node.refused_agent != applicant.agent
    return Admit(node, accepted, tell_version=is_news and events_allowed(1, node.told_until, now)[0] == 1)


def _is_clone(applicant: Applicant, node: NodeAtDoor, rules: DoorRules, now: Instant) -> bool:
    """Another run of the agent, while the one with the link was heard just now. A machine that came back very fast
    looks the same: it is admitted once the old link has been silent for two beats."""
    is_heard = node.has_link and node.heard_at is not None and now - node.heard_at <= 2 * rules.beat_us
    return is_heard and node.instance is not None and node.instance != applicant.instance
