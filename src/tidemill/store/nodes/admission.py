"""Admits agents, many at a time, in a handful of statements. Core decides about each.

Lock order: owners, tokens, presence, each by id. So no two processes deadlock, and a decision still holds when it is
written. A newcomer's node, its use of the token, the event and the letter to its owner are written together or not at
all.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.accounts.roles import Role
from tidemill.core.clock import DAY, Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids, first_id_at
from tidemill.core.nodes.admission import (
    AdmissionDecision,
    AdmissionRecords,
    AdmissionRefusal,
    Admit,
    Applicant,
    DoorRules,
    NodeAtDoor,
    Owner,
    Register,
    TurnAway,
    decide,
)
from tidemill.core.nodes.events import NodeCloned, NodeJoined, NodeVersionRefused
from tidemill.core.nodes.join_tokens import JoinToken
from tidemill.core.nodes.node import first_names
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin
from tidemill.store.events import events
from tidemill.store.notices import joining_letters
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query


class _OwnerRow(NamedTuple):
    id: UUID
    roles: list[str]
    blocked: bool
    joined: int


class _LinkRow(NamedTuple):
    node_id: UUID
    generation: int
    received: int


_OWNERS = Query("nodes/admission/owners", _OwnerRow)
_TOKENS = Query("nodes/admission/tokens", JoinToken)
_LOCK = Query("nodes/admission/lock")
_NODES = Query("nodes/admission/nodes", NodeAtDoor)
_NAMED = Query("nodes/admission/named", UUID)
_NAMES = Query("nodes/admission/names", str)
_REGISTER = Query("nodes/admission/register", UUID)
_USE = Query("nodes/admission/use")
_LINK = Query("nodes/admission/link", _LinkRow)
_AGENTS = Query("nodes/admission/agents")
_CLONED = Query("nodes/admission/cloned")

BATCH_MAX = 500
_AGAIN_MS = 1_000


@dataclass(frozen=True)
class NodeAdmission:
    """An admitted node. `received` is the number of its last stored report, `rules` the pool's rule book for it, in
    JSON."""

    node_id: UUID
    generation: int
    received: int
    rules: bytes
    version_accepted: bool


AdmissionAnswer: TypeAlias = NodeAdmission | TurnAway


@dataclass(frozen=True)
class AdmissionDesk:
    """The process that admits, and its rules."""

    process_id: UUID
    rules: DoorRules
    keyring: Keyring
    ids: Ids


@dataclass(frozen=True)
class _Entry:
    """An applicant that is admitted: its index in the batch, its node, and what it is told. A newcomer gets a name."""

    index: int
    applicant: Applicant
    node_id: UUID
    account_id: UUID
    rules: bytes
    wishes: int
    version_accepted: bool
    tell_version: bool
    token: JoinToken | None = None
    told_until: Instant | None = None
    name: str = ""


async def admit(
    transaction: Connection, applicants: Sequence[Applicant], door: AdmissionDesk, now: Instant
) -> list[AdmissionAnswer]:
    """One answer per applicant, in their order."""
    assert len(applicants) <= BATCH_MAX, "a batch is short, because others wait for its locks"
    records = await _records(transaction, applicants, now)
    verdicts = decide(applicants, records, door.rules, now)
    entries = [
        entry
        for index, (applicant, verdict) in enumerate(zip(applicants, verdicts, strict=True))
        if (entry := _entry(index, applicant, verdict, door.ids, now))
    ]
    entries = await _registered(transaction, entries, door, now)
    links = await _linked(transaction, entries, door.process_id, now)
    await _tell(transaction, applicants, verdicts, entries, door, now)
    return [_answer(verdict, links.get(index)) for index, verdict in enumerate(verdicts)]


async def _records(transaction: Connection, applicants: Sequence[Applicant], now: Instant) -> AdmissionRecords:
    """What is known of the applicants, locked."""
    keys = list({applicant.key for applicant in applicants})
    hashes_shown = (applicant.token_sha256 for applicant in applicants if applicant.node_id is None)
    hashes = list({sha256 for sha256 in hashes_shown if sha256 is not None})
    owners = await _OWNERS.rows(transaction, keys=keys, hashes=hashes, since_id=first_id_at(Instant(now - DAY)))
    tokens = await _TOKENS.rows(transaction, hashes=hashes) if hashes else []
    await _LOCK.run(transaction, keys=keys)
    nodes = await _NODES.rows(transaction, keys=keys, now=now)
    return AdmissionRecords(
        {node.key: node for node in nodes},
        await _named(transaction, applicants, {node.id for node in nodes}),
        {token.sha256: token for token in tokens},
        {owner.id: Owner(owner.id, frozenset(map(Role, owner.roles)), owner.blocked, owner.joined) for owner in owners},
    )


async def _named(transaction: Connection, applicants: Sequence[Applicant], known: set[UUID]) -> frozenset[UUID]:
    """Which of the nodes that applicants name exist."""
    strange = {applicant.node_id for applicant in applicants if applicant.node_id is not None} - known
    if not strange:
        return frozenset(known)
    return frozenset(known.union(await _NAMED.rows(transaction, ids=list(strange))))


def _entry(index: int, applicant: Applicant, verdict: AdmissionDecision, ids: Ids, now: Instant) -> _Entry | None:
    match verdict:
        case Admit(node, accepted, tell_version):
            terms = (accepted, tell_version, None, verdict.told_until(now))
            return _Entry(index, applicant, node.id, node.account_id, node.rules.encode(), node.wishes, *terms)
        case Register(token, accepted):
            rules = rule_book.to_json(_first_rules(token, now))
            return _Entry(index, applicant, ids.new(now), token.account_id, rules, 0, accepted, not accepted, token)
        case TurnAway():
            return None


def _first_rules(token: JoinToken, now: Instant) -> RuleBook:
    """The token's labels, which were checked when it was made."""
    if not token.labels:
        return RuleBook()
    wishes = {"labels": list(token.labels)}
    book = rule_book.change(RuleBook(), wishes, by="join token", place=RuleOrigin.POOL, now=now)
    assert isinstance(book, RuleBook), "the labels of a token are checked when it is made"
    return book


async def _registered(
    transaction: Connection, entries: Sequence[_Entry], door: AdmissionDesk, now: Instant
) -> list[_Entry]:
    """Insert the newcomers' nodes. Returns all admitted entries, without those whose key another process has just
    registered."""
    entries = await _named_as_tokens(transaction, entries)
    newcomers = [(entry, entry.token) for entry in entries if entry.token is not None]
    if not newcomers:
        return entries
    node_ids = await _REGISTER.rows(
        transaction,
        ids=[entry.node_id for entry, _ in newcomers],
        keys=[entry.applicant.key for entry, _ in newcomers],
        token_ids=[token.id for _, token in newcomers],
        names=[entry.name for entry, _ in newcomers],
        agents=[entry.applicant.agent for entry, _ in newcomers],
        refused_agents=[_refused_agent(entry) for entry, _ in newcomers],
        rules=[json.loads(entry.rules) for entry, _ in newcomers],
        now=now,
    )
    registered = set(node_ids)
    await _use_tokens(
        transaction, [(entry, token) for entry, token in newcomers if entry.node_id in registered], door, now
    )
    return [entry for entry in entries if entry.token is None or entry.node_id in registered]


async def _named_as_tokens(transaction: Connection, entries: Sequence[_Entry]) -> list[_Entry]:
    """Give newcomers the names of their tokens, numbered among the nodes of each owner."""
    by_owner: dict[UUID, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.token is not None:
            by_owner.setdefault(entry.account_id, []).append(place)
    named = list(entries)
    for owner_id, places in by_owner.items():
        wished = [token.name for place in places if (token := entries[place].token)]
        taken = await _NAMES.rows(transaction, owner_id=owner_id)
        for place, name in zip(places, first_names(wished, taken), strict=True):
            named[place] = replace(named[place], name=name)
    return named


async def _use_tokens(
    transaction: Connection, joined: Sequence[tuple[_Entry, JoinToken]], door: AdmissionDesk, now: Instant
) -> None:
    by_token: dict[UUID, list[tuple[_Entry, JoinToken]]] = {}
    for entry, token in joined:
        by_token.setdefault(token.id, []).append((entry, token))
    machines = [
        joining_letters.JoinedMachine(token, entry.name, entry.applicant.address)
        for entry, token in (first for first, *_ in by_token.values())
    ]
    written = await joining_letters.write(transaction, machines, door.keyring, door.ids, now)
    await _USE.run(
        transaction,
        ids=list(by_token),
        uses=[len(uses) for uses in by_token.values()],
        letters=[token_id in written for token_id in by_token],
        now=now,
    )


async def _linked(
    transaction: Connection, entries: Sequence[_Entry], process_id: UUID, now: Instant
) -> Mapping[int, NodeAdmission]:
    """Give the nodes their next links. Returns them by their index in the batch."""
    if not entries:
        return {}
    rows = await _LINK.rows(
        transaction,
        node_ids=[entry.node_id for entry in entries],
        instances=[entry.applicant.instance for entry in entries],
        tolds=[entry.wishes for entry in entries],
        told_untils=[entry.told_until for entry in entries],
        process_id=process_id,
        now=now,
    )
    links = {row.node_id: row for row in rows}
    await _write_agents(transaction, [entry for entry in entries if entry.token is None])
    return {entry.index: NodeAdmission(*links[entry.node_id], entry.rules, entry.version_accepted) for entry in entries}


async def _write_agents(transaction: Connection, known: Sequence[_Entry]) -> None:
    if known:
        await _AGENTS.run(
            transaction,
            ids=[entry.node_id for entry in known],
            agents=[entry.applicant.agent for entry in known],
            refused_agents=[_refused_agent(entry) for entry in known],
        )


def _refused_agent(entry: _Entry) -> str | None:
    return entry.applicant.agent if entry.tell_version else None


async def _tell(
    transaction: Connection,
    applicants: Sequence[Applicant],
    verdicts: Sequence[AdmissionDecision],
    entries: Sequence[_Entry],
    door: AdmissionDesk,
    now: Instant,
) -> None:
    """Append events: who joined, which agents are too old, and which nodes have a clone."""
    clones = {
        verdict.cloned.id: NodeCloned(verdict.cloned.account_id, verdict.cloned.id, applicant.address)
        for applicant, verdict in zip(applicants, verdicts, strict=True)
        if isinstance(verdict, TurnAway) and verdict.cloned
    }
    if clones:
        await _CLONED.run(transaction, ids=sorted(clones), now=now)
    new_events = [*_entry_events(entries, door.rules.oldest_agent), *clones.values()]
    if new_events:
        await events.append(transaction, new_events, door.ids, now)


def _entry_events(entries: Iterable[_Entry], oldest: str) -> Iterable[Event]:
    for entry in entries:
        who, caller = (entry.account_id, entry.node_id), entry.applicant
        if entry.token is not None:
            yield NodeJoined(*who, entry.name, entry.token.house, entry.token.id, caller.agent, caller.address)
        if entry.tell_version:
            yield NodeVersionRefused(*who, caller.agent, oldest)


def _answer(verdict: AdmissionDecision, admitted: NodeAdmission | None) -> AdmissionAnswer:
    if isinstance(verdict, TurnAway):
        return verdict
    return admitted or TurnAway(AdmissionRefusal.JOINED_AT_ONCE, retry_ms=_AGAIN_MS)
