"""The registry against a real database: joining, coming back, being removed; with many at once, and with bad intent."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from tests.worlds.databases.keyrings import keyring_of
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.roles import Role
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.ids import Ids
from tidemill.core.nodes.admission import JOINED_A_DAY_MAX, AdmissionRefusal, Applicant, DoorRules, TurnAway
from tidemill.core.nodes.join_tokens import OPEN_MAX, JoinToken, JoinTokenRefusal, sha256
from tidemill.core.nodes.life import LifeRefusal, NodeLife
from tidemill.core.nodes.node import Node, NodeRefusal
from tidemill.core.nodes.reports import EVENT_EVERY_US, EVENTS_SAVED
from tidemill.core.nodes.rules.rule_book import rules_of
from tidemill.core.nodes.rules.rules import WorkMode
from tidemill.core.notices.mail import LetterKind
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import accounts
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.clock import read_clock
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.nodes import admission, join_tokens, node_instructions, nodes
from tidemill.store.nodes.admission import AdmissionAnswer, AdmissionDesk, NodeAdmission
from tidemill.store.nodes.nodes import NodeFilter
from tidemill.store.notices import mail
from tidemill.store.operations.processes import Process, register, show_life, stop

RULES = DoorRules(beat_us=30 * SECOND, oldest_agent="0.1")
AGENT = "tidemill/0.1"


@dataclass
class Registry:
    """A pool's registry, and what its people do in it."""

    database: Database
    ids: Ids
    door: AdmissionDesk
    now: Instant

    async def person(self, *roles: Role) -> UUID:
        newcomer = NewAccount(
            Address(f"{secrets.token_hex(6)}@people.example"),
            "x",
            frozenset(roles or {Role.PROVIDER}),
            Language.ENGLISH,
        )
        async with self.database.transaction() as transaction:
            made = await accounts.make(transaction, newcomer, self.ids, self.now)
        assert isinstance(made, UUID)
        return made

    async def token(self, account_id: UUID, **changed: object) -> str:
        """A new token's secret part."""
        secret = secrets.token_hex(32)
        until = Instant(self.now + 3600 * SECOND)
        token = JoinToken(self.ids.new(self.now), account_id, "rack", sha256(secret), False, [], 1, 0, self.now, until)
        token = replace(token, **changed)  # type: ignore[arg-type]
        async with self.database.transaction() as transaction:
            made = await join_tokens.make(transaction, token, by="test", ids=self.ids, now=self.now)
        assert isinstance(made, JoinToken), made
        return secret

    async def admit(self, *applicants: Applicant, door: AdmissionDesk | None = None) -> list[AdmissionAnswer]:
        async with self.database.transaction() as transaction:
            return await admission.admit(transaction, applicants, door or self.door, self.now)

    async def joined(self, account_id: UUID, **changed: object) -> tuple[NodeAdmission, Applicant]:
        """A node that has just joined, and how its agent calls from then on."""
        applicant = newcomer(await self.token(account_id, **changed))
        (answer,) = await self.admit(applicant)
        assert isinstance(answer, NodeAdmission), answer
        return answer, replace(applicant, node_id=answer.node_id, token_sha256=None)

    async def refused(self, applicant: Applicant) -> Refusal:
        (answer,) = await self.admit(applicant)
        assert isinstance(answer, TurnAway), answer
        return answer.refusal

    async def node(self, node_id: UUID) -> Node:
        async with self.database.connection() as connection:
            found = await nodes.get(connection, node_id, None)
        assert found
        return found

    async def remove(self, node_id: UUID, owner: UUID | None, reason: str = "") -> Node | Refusal:
        async with self.database.transaction() as transaction:
            return await nodes.remove(transaction, node_id, reason, owner=owner, by="test", ids=self.ids, now=self.now)

    async def block(self, account_id: UUID, blocked: bool = True) -> None:
        async with self.database.transaction() as transaction:
            answer = await accounts.set_blocked(
                transaction, account_id, blocked=blocked, reason="why", by="test", ids=self.ids, now=self.now
            )
        assert not isinstance(answer, Refusal)

    async def told(self, kind: str) -> list[dict[str, object]]:
        async with self.database.connection() as connection:
            log = await events.read(connection, LOG_START, 10_000)
        return [{"accounts": event.accounts, **event.body} for event in log if event.kind == kind]

    async def letters(self) -> int:
        async with self.database.connection() as connection:
            count: int = await connection.fetchval(
                "SELECT count(*) FROM mail WHERE kind = $1", LetterKind.NODE_JOINED.value
            )
        return count

    async def uses(self) -> list[int]:
        async with self.database.connection() as connection:
            return [row["uses"] for row in await connection.fetch("SELECT uses FROM join_token ORDER BY id")]

    async def untold(self) -> list[node_instructions.PendingInstruction]:
        async with self.database.connection() as connection:
            return await node_instructions.pending_instructions(connection, self.door.process_id)


def newcomer(secret: str, key: bytes | None = None) -> Applicant:
    return Applicant(
        key or secrets.token_bytes(32), UUID(int=secrets.randbits(128)), AGENT, "198.51.100.7", None, sha256(secret)
    )


@pytest.fixture
async def registry(database: Database, ids: Ids) -> Registry:
    async with database.connection() as connection:
        now = await read_clock(connection)
    keyring = await keyring_of(database, ids, now)
    return Registry(database, ids, AdmissionDesk(await _process(database, ids, now), RULES, keyring, ids), now)


async def _process(database: Database, ids: Ids, now: Instant) -> UUID:
    process = Process(ids.new(now), "host", 1, "0.1", "same", now, now, "running")
    await register(database, process, ids)
    return process.id


async def test_the_program_cannot_change_the_pools_identity_nor_the_key_of_a_node(registry: Registry) -> None:
    for statement in (
        "UPDATE pool_identity SET seed = seed",
        "DELETE FROM pool_identity",
        "UPDATE node SET key = key",
        "UPDATE node SET account_id = account_id",
        "DELETE FROM node",
        "UPDATE join_token SET sha256 = sha256",
        "UPDATE join_token SET uses_max = 5",
    ):
        async with registry.database.connection() as connection:
            with pytest.raises(Exception, match="permission denied"):
                await connection.execute(statement)


async def test_a_machine_joins_is_told_of_and_comes_back(registry: Registry) -> None:
    ann = await registry.person()
    first, caller = await registry.joined(ann)
    node = await registry.node(first.node_id)
    assert (first.generation, first.received, first.version_accepted) == (1, 0, True)
    assert (node.life, node.name, node.account_id) == (NodeLife.REGISTERED, "rack", ann)
    (told,) = await registry.told("node.joined")
    assert (told["accounts"], told["address"]) == ([ann], "198.51.100.7")
    (second,) = await registry.admit(caller)
    assert isinstance(second, NodeAdmission)
    assert (second.node_id, second.generation) == (first.node_id, 2)
    assert await registry.uses() == [1]


async def test_a_newcomer_whose_welcome_was_lost_gets_its_node_again_and_costs_one_use(registry: Registry) -> None:
    ann = await registry.person()
    secret = await registry.token(ann)
    applicant = newcomer(secret)
    (first,) = await registry.admit(applicant)
    (again,) = await registry.admit(replace(applicant))
    assert isinstance(first, NodeAdmission)
    assert isinstance(again, NodeAdmission)
    assert (again.node_id, again.generation) == (first.node_id, 2)
    assert await registry.uses() == [1]
    assert await registry.refused(newcomer(secret)) is JoinTokenRefusal.JOIN_TOKEN_USED_UP


async def test_the_last_use_of_a_token_is_one_node_though_many_processes_let_in_at_once(registry: Registry) -> None:
    secret = await registry.token(await registry.person(), uses_max=3)
    answers = await asyncio.gather(*(registry.admit(newcomer(secret), newcomer(secret)) for _ in range(8)))
    admitted = [answer for batch in answers for answer in batch if isinstance(answer, NodeAdmission)]
    assert (len(admitted), await registry.uses()) == (3, [3])
    assert len(await registry.told("node.joined")) == 3


async def test_one_key_that_joins_twice_at_once_is_one_node(registry: Registry) -> None:
    """For two owners, with two tokens, in two transactions: one owner gets it, whoever is first."""
    ann, ben = await registry.person(), await registry.person()
    key = secrets.token_bytes(32)
    callers = [newcomer(await registry.token(owner), key) for owner in (ann, ben)]
    answers = [batch[0] for batch in await asyncio.gather(*map(registry.admit, callers))]
    (admitted,) = [answer for answer in answers if isinstance(answer, NodeAdmission)]
    (away,) = [answer for answer in answers if isinstance(answer, TurnAway)]
    assert away.refusal in (AdmissionRefusal.JOINED_AT_ONCE, AdmissionRefusal.NODE_KEY_TAKEN)
    assert sorted(await registry.uses()) == [0, 1]
    other = ben if (await registry.node(admitted.node_id)).account_id == ann else ann
    late = newcomer(await registry.token(other), key)
    assert await registry.refused(late) is AdmissionRefusal.NODE_KEY_TAKEN


async def test_tokens_that_are_over_let_nobody_in(registry: Registry) -> None:
    ann = await registry.person()
    assert await registry.refused(newcomer("guessed")) is JoinTokenRefusal.JOIN_TOKEN_UNKNOWN
    expired = await registry.token(ann, expires_at=registry.now)
    assert await registry.refused(newcomer(expired)) is JoinTokenRefusal.JOIN_TOKEN_EXPIRED
    revoked = await registry.token(ann)
    async with registry.database.transaction() as transaction:
        await join_tokens.revoke_all(transaction, ann, by="test", ids=registry.ids, now=registry.now)
    assert await registry.refused(newcomer(revoked)) is JoinTokenRefusal.JOIN_TOKEN_REVOKED
    house = await registry.token(ann, house=True)
    assert await registry.refused(newcomer(house)) is JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE


async def test_nobody_has_more_open_tokens_than_they_may_and_what_is_over_does_not_pile_up(registry: Registry) -> None:
    ann = await registry.person()
    results = await asyncio.gather(*(registry.token(ann) for _ in range(OPEN_MAX + 5)), return_exceptions=True)
    assert sum(isinstance(result, str) for result in results) == OPEN_MAX
    assert len(await registry.uses()) == OPEN_MAX
    registry.now = Instant(registry.now + 2 * DAY)
    await registry.token(ann)
    assert len(await registry.uses()) == 1


async def test_a_token_is_its_owners_to_revoke(registry: Registry) -> None:
    ann, ben = await registry.person(), await registry.person()
    await registry.token(ann)
    async with registry.database.transaction() as transaction:
        (token,) = await join_tokens.listed(transaction, ann, registry.now)
        assert await join_tokens.listed(transaction, ben, registry.now) == []
        answers = [
            await join_tokens.revoke(transaction, who, token.id, by="test", ids=registry.ids, now=registry.now)
            for who in (ben, ann, ann)
        ]
    assert answers == [JoinTokenRefusal.UNKNOWN_JOIN_TOKEN, None, JoinTokenRefusal.UNKNOWN_JOIN_TOKEN]


async def test_a_removed_node_is_gone_for_good_and_its_holder_is_to_close_the_link(registry: Registry) -> None:
    ann = await registry.person()
    first, caller = await registry.joined(ann)
    assert await registry.untold() == []
    assert isinstance(await registry.remove(first.node_id, ann), Node)
    (order,) = await registry.untold()
    assert (order.node_id, order.generation, order.close) == (first.node_id, 1, LifeRefusal.NODE_REMOVED)
    assert await registry.refused(caller) is LifeRefusal.NODE_REMOVED
    again = replace(caller, node_id=None, token_sha256=sha256(await registry.token(ann)))
    assert await registry.refused(again) is LifeRefusal.NODE_REMOVED
    assert await registry.remove(first.node_id, ann) is LifeRefusal.NODE_REMOVED
    assert len(await registry.told("node.removed")) == 1


async def test_a_node_that_is_removed_while_it_calls_is_out_or_will_be_closed(registry: Registry) -> None:
    ann = await registry.person()
    for _ in range(10):
        first, caller = await registry.joined(ann)
        (answer,), _ = await asyncio.gather(registry.admit(caller), registry.remove(first.node_id, ann))
        to_close = {order.node_id for order in await registry.untold() if order.close}
        assert isinstance(answer, TurnAway) or first.node_id in to_close


async def test_anothers_node_is_a_missing_node(registry: Registry) -> None:
    ann, ben = await registry.person(), await registry.person()
    first, _ = await registry.joined(ann)
    by = {"owner": ben, "by": "test", "ids": registry.ids, "now": registry.now}
    async with registry.database.transaction() as transaction:
        assert await nodes.get(transaction, first.node_id, ben) is None
        answers = [
            await nodes.rename(transaction, first.node_id, "mine", **by),  # type: ignore[arg-type]
            await nodes.change_rules(transaction, first.node_id, {"price": "0"}, **by),  # type: ignore[arg-type]
            await nodes.remove(transaction, first.node_id, "mine", **by),  # type: ignore[arg-type]
        ]
    assert answers == [NodeRefusal.UNKNOWN_NODE] * 3
    assert (await registry.node(first.node_id)).life is NodeLife.REGISTERED


async def test_an_operator_says_why_and_an_owner_need_not(registry: Registry) -> None:
    first, _ = await registry.joined(await registry.person())
    assert await registry.remove(first.node_id, None) is ReasonRefusal.REASON_MISSING
    removed = await registry.remove(first.node_id, None, "stolen goods")
    assert isinstance(removed, Node)
    assert removed.removed_reason == "stolen goods"


async def test_a_blocked_account_keeps_its_links_and_brings_no_new_machine(registry: Registry) -> None:
    ann = await registry.person()
    _, caller = await registry.joined(ann)
    secret = await registry.token(ann)
    await registry.block(ann)
    assert await registry.untold() == []
    (answer,) = await registry.admit(caller)
    assert isinstance(answer, NodeAdmission), "what it has finished is delivered"
    assert await registry.refused(newcomer(secret)) is AdmissionRefusal.NODE_OWNER_BLOCKED
    await registry.block(ann, blocked=False)
    (answer,) = await registry.admit(newcomer(secret))
    assert isinstance(answer, NodeAdmission)


async def test_an_account_with_nodes_is_not_deleted_and_one_without_joins_nobody(registry: Registry) -> None:
    ann = await registry.person()
    secret = await registry.token(ann)
    first, _ = await registry.joined(ann)
    async with registry.database.transaction() as transaction:
        assert await accounts.delete(transaction, ann, registry.ids, registry.now) is NodeRefusal.NODES_LEFT
    await registry.remove(first.node_id, ann)
    async with registry.database.transaction() as transaction:
        gone = await accounts.delete(transaction, ann, registry.ids, registry.now)
    assert not isinstance(gone, Refusal)
    assert await registry.refused(newcomer(secret)) is JoinTokenRefusal.JOIN_TOKEN_REVOKED


async def test_a_clone_is_turned_away_and_told_of_once(registry: Registry) -> None:
    ann = await registry.person()
    first, caller = await registry.joined(ann)
    clone = replace(caller, instance=UUID(int=7), address="203.0.113.9")
    session = await registry.database.own_connection()
    await show_life(session, registry.door.process_id)
    for _ in range(3):
        (answer,) = await registry.admit(clone)
        assert isinstance(answer, TurnAway)
        assert (answer.refusal, answer.node_id) == (AdmissionRefusal.IDENTITY_IN_USE, first.node_id)
        assert answer.retry_ms == 30_000
    (told,) = await registry.told("node.cloned")
    assert (told["accounts"], told["address"]) == ([ann], "203.0.113.9")
    registry.now = Instant(registry.now + 61 * SECOND)
    (late,) = await registry.admit(clone)
    assert isinstance(late, NodeAdmission), "a machine that was silent for two beats has made room"
    await session.close()


async def test_another_run_is_no_clone_once_the_process_that_held_the_link_is_gone(registry: Registry) -> None:
    _, caller = await registry.joined(await registry.person())
    await stop(registry.database, registry.door.process_id, registry.ids, registry.now)
    other = replace(registry.door, process_id=await _process(registry.database, registry.ids, registry.now))
    (answer,) = await registry.admit(replace(caller, instance=UUID(int=7)), door=other)
    assert isinstance(answer, NodeAdmission)
    assert answer.generation == 2


async def test_another_run_is_no_clone_once_the_process_that_held_the_link_was_killed(registry: Registry) -> None:
    """Nobody has marked it as lost yet. Its session ends with it, and so does what shows that it lives."""
    first, caller = await registry.joined(await registry.person())
    session = await registry.database.own_connection()
    await show_life(session, registry.door.process_id)
    other = replace(registry.door, process_id=await _process(registry.database, registry.ids, registry.now))
    restarted = replace(caller, instance=UUID(int=7))
    (early,) = await registry.admit(restarted, door=other)
    assert isinstance(early, TurnAway)
    await session.close()
    await _until_the_server_is_older(registry)
    (answer,) = await registry.admit(restarted, door=other)
    assert isinstance(answer, NodeAdmission)
    assert (answer.node_id, answer.generation) == (first.node_id, 2)


async def test_a_server_that_has_just_started_has_callers_ask_again_soon(registry: Registry) -> None:
    """All sessions have ended with it: whose process lives shows in a moment."""
    _, caller = await registry.joined(await registry.person())
    async with registry.database.connection() as connection:
        started_at = Instant(await connection.fetchval("SELECT pg_postmaster_start_time()"))
    registry.now = Instant(started_at + 2 * SECOND)
    async with registry.database.connection() as connection:
        await connection.execute("UPDATE presence SET heard_at = $1", registry.now)
    restarted = replace(caller, instance=UUID(int=7))
    (answer,) = await registry.admit(restarted)
    assert isinstance(answer, TurnAway)
    assert answer.retry_ms == 1_000
    assert await registry.told("node.cloned") == []
    registry.now = Instant(started_at + 4 * SECOND)
    (later,) = await registry.admit(restarted)
    assert isinstance(later, NodeAdmission)


async def _until_the_server_is_older(registry: Registry) -> None:
    """Past the moment in which a server that has just started gives processes time to show that they live."""
    async with registry.database.connection() as connection:
        started_at = await connection.fetchval("SELECT pg_postmaster_start_time()")
    registry.now = Instant(max(registry.now, started_at + 4 * SECOND))


async def test_an_old_agent_comes_in_and_is_told_of_once_for_each_version(registry: Registry) -> None:
    _, caller = await registry.joined(await registry.person())
    strict = replace(registry.door, rules=DoorRules(30 * SECOND, "0.2"))
    for agent in (AGENT, AGENT, "tidemill/0.1.5", "tidemill/0.2"):
        (answer,) = await registry.admit(replace(caller, agent=agent), door=strict)
        assert isinstance(answer, NodeAdmission)
        assert answer.version_accepted is (agent == "tidemill/0.2")
    told = await registry.told("node.version_refused")
    assert [(event["agent"], event["oldest"]) for event in told] == [(AGENT, "0.2"), ("tidemill/0.1.5", "0.2")]
    assert (await registry.node(answer.node_id)).agent == "tidemill/0.2"


async def test_an_agent_that_calls_itself_something_else_each_time_fills_no_log(registry: Registry) -> None:
    _, caller = await registry.joined(await registry.person())
    strict = replace(registry.door, rules=DoorRules(30 * SECOND, "1.0"))
    for number in range(EVENTS_SAVED + 5):
        (answer,) = await registry.admit(replace(caller, agent=f"tidemill/0.{number}"), door=strict)
        assert isinstance(answer, NodeAdmission)
        assert not answer.version_accepted
    assert len(await registry.told("node.version_refused")) == EVENTS_SAVED
    registry.now = Instant(registry.now + EVENT_EVERY_US)
    await registry.admit(caller, door=strict)
    assert len(await registry.told("node.version_refused")) == EVENTS_SAVED + 1


async def test_an_account_cannot_join_machines_without_end(registry: Registry) -> None:
    """Of each the pool keeps a row, a key and a line of its audit trail for ever, also when it left at once."""
    ann, ben = await registry.person(), await registry.person()
    secret = await registry.token(ann, uses_max=100)
    _, caller = await registry.joined(ann)
    async with registry.database.connection() as connection:
        await connection.execute(
            "INSERT INTO node (id, account_id, key, join_token_id, name, house, life, agent, joined_at) "
            "SELECT id, $2, sha256(id::text::bytea), (SELECT id FROM join_token WHERE account_id = $2 LIMIT 1), 'x', "
            "false, 'registered', 'x', $3 FROM unnest($1::uuid[]) AS id",
            [registry.ids.new(registry.now) for _ in range(JOINED_A_DAY_MAX - 3)],
            ann,
            registry.now,
        )
    answers = await registry.admit(*(newcomer(secret) for _ in range(4)), newcomer(await registry.token(ben)), caller)
    refusals = [answer.refusal if isinstance(answer, TurnAway) else None for answer in answers]
    full = AdmissionRefusal.TOO_MANY_JOINED
    assert refusals == [None, None, full, full, None, None]
    registry.now = Instant(registry.now + 2 * DAY)
    (tomorrow,) = await registry.admit(newcomer(await registry.token(ann)))
    assert isinstance(tomorrow, NodeAdmission)


async def test_nonsense_of_one_caller_costs_only_that_caller(registry: Registry) -> None:
    ann = await registry.person()
    _, caller = await registry.joined(ann)
    nonsense = [
        replace(newcomer(await registry.token(ann)), agent="tidemill/\x00"),
        replace(caller, key=secrets.token_bytes(32), agent="\x1b[2J"),
        replace(caller, key=secrets.token_bytes(32), node_id=UUID(int=5)),
        replace(caller, key=secrets.token_bytes(32)),
        Applicant(secrets.token_bytes(32), UUID(int=1), "", "", None, None),
    ]
    *answers, last = await registry.admit(*nonsense, caller)
    assert [answer.refusal for answer in answers if isinstance(answer, TurnAway)] == [
        AdmissionRefusal.AGENT_MALFORMED,
        AdmissionRefusal.AGENT_MALFORMED,
        AdmissionRefusal.NODE_UNKNOWN,
        AdmissionRefusal.NODE_KEY_WRONG,
        JoinTokenRefusal.JOIN_TOKEN_UNKNOWN,
    ]
    assert isinstance(last, NodeAdmission)


async def test_an_owner_gets_one_letter_an_hour_for_a_token(registry: Registry) -> None:
    ann = await registry.person()
    secret = await registry.token(ann, uses_max=10, expires_at=Instant(registry.now + DAY))
    await registry.admit(newcomer(secret), newcomer(secret))
    await registry.admit(newcomer(secret))
    assert await registry.letters() == 1
    registry.now = Instant(registry.now + 3600 * SECOND)
    await registry.admit(newcomer(secret))
    assert await registry.letters() == 2
    async with registry.database.connection() as connection:
        (newest,) = await mail.newest(connection, 1)
        stored = await mail.find(connection, newest.id)
        assert stored
        letter = await mail.opened(registry.door.keyring, stored)
    assert (letter.kind, letter.parameters["token"]) == (LetterKind.NODE_JOINED, "rack")


async def test_labels_of_a_token_are_rules_of_its_nodes(registry: Registry) -> None:
    first, _ = await registry.joined(await registry.person(), labels=("rack=7", "power=green"))
    entry = (await registry.node(first.node_id)).book.entries["labels"]
    assert set(entry.value) == {"rack=7", "power=green"}
    assert entry.place.value == "pool"


async def test_rules_are_changed_whole_and_told_until_the_holder_has_told_them(registry: Registry) -> None:
    ann = await registry.person()
    first, caller = await registry.joined(ann)

    async def change(**wishes: object) -> Node | Refusal:
        async with registry.database.transaction() as transaction:
            return await nodes.change_rules(
                transaction, first.node_id, wishes, owner=ann, by="test", ids=registry.ids, now=registry.now
            )

    assert isinstance(await change(work="drain", price="high"), Refusal)
    assert await registry.untold() == []
    changed = await change(work="drain")
    assert isinstance(changed, Node)
    assert rules_of(changed.book).work is WorkMode.DRAIN
    (order,) = await registry.untold()
    assert '"drain"' in order.rules
    assert order.close is None
    await change(price="1.5")
    async with registry.database.connection() as connection:
        await node_instructions.mark_told(connection, [order])
    (left,) = await registry.untold()
    assert left.wishes == order.wishes + 1
    await registry.admit(caller)
    assert await registry.untold() == [], "a welcome tells the rules, too"
    told = await registry.told("node.rules_changed")
    assert [event["rules"] for event in told] == [{"work": "drain"}, {"price": "1.5"}]


async def test_many_who_change_rules_at_once_all_count(registry: Registry) -> None:
    ann = await registry.person()
    first, _ = await registry.joined(ann)

    async def change(name: str, value: object) -> None:
        async with registry.database.transaction() as transaction:
            await nodes.change_rules(
                transaction, first.node_id, {name: value}, owner=ann, by="test", ids=registry.ids, now=registry.now
            )

    wishes = {"price": "1", "power_limit_w": 200, "temperature_limit_c": 70, "work": "pause"}
    await asyncio.gather(*(change(*wish) for wish in wishes.items()))
    node = await registry.node(first.node_id)
    assert node.book.entries.keys() == wishes.keys()
    assert node.wishes == len(wishes)


async def test_a_node_is_suspended_and_let_work_again(registry: Registry) -> None:
    first, _ = await registry.joined(await registry.person())

    async def suspend(suspended: bool, reason: str = "looks odd") -> Node | Refusal:
        async with registry.database.transaction() as transaction:
            return await nodes.suspend(
                transaction,
                first.node_id,
                suspended=suspended,
                reason=reason,
                by="test",
                ids=registry.ids,
                now=registry.now,
            )

    assert await suspend(True, " ") is ReasonRefusal.REASON_MISSING
    node = await suspend(True)
    assert isinstance(node, Node)
    assert node.suspended_reason == "looks odd"
    assert await suspend(True) is NodeRefusal.NODE_SUSPENDED
    assert not isinstance(await suspend(False), Refusal)
    assert await suspend(False) is NodeRefusal.NODE_NOT_SUSPENDED
    assert [event["suspended"] for event in await registry.told("node.suspended")] == [True, False]


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\x00b", "\x1b[31mred", "a\nb", "a\u202eb"])
async def test_a_name_that_cannot_be_shown_is_refused(registry: Registry, name: str) -> None:
    ann = await registry.person()
    first, _ = await registry.joined(ann)
    async with registry.database.transaction() as transaction:
        refused = await nodes.rename(
            transaction, first.node_id, name, owner=ann, by="test", ids=registry.ids, now=registry.now
        )
    assert refused is NodeRefusal.NODE_NAME_MALFORMED


async def test_a_list_goes_on_where_the_page_before_it_ended(registry: Registry) -> None:
    ann, ben = await registry.person(), await registry.person()
    made = [(await registry.joined(owner))[0].node_id for owner in (ann, ann, ben, ann)]
    await registry.remove(made[0], ann)

    async def page(wanted: NodeFilter, after: UUID | None, limit: int) -> Sequence[UUID]:
        async with registry.database.connection() as connection:
            return [node.id for node in await nodes.listed(connection, wanted, after, limit)]

    assert await page(NodeFilter(), None, 2) == [made[3], made[2]]
    assert await page(NodeFilter(), made[2], 2) == [made[1]]
    assert await page(NodeFilter(ann), None, 9) == [made[3], made[1]]
    assert await page(NodeFilter(ann, removed=True), None, 9) == [made[0]]
    assert await page(NodeFilter(ann, "rack-3"), None, 9) == [made[3]]
    assert await page(NodeFilter(ben, "rack-3"), None, 9) == []


async def test_batches_of_many_processes_wait_for_each_other_and_never_for_ever(registry: Registry) -> None:
    """Each batch has the same nodes in another order, and newcomers of the same tokens."""
    people = [await registry.person() for _ in range(3)]
    callers = [(await registry.joined(person))[1] for person in people for _ in range(5)]
    secret = [await registry.token(person, uses_max=100) for person in people]
    for _ in range(3):
        batches = [
            secrets.SystemRandom().sample([*callers, *(newcomer(one) for one in secret)], len(callers) + 3)
            for _ in range(6)
        ]
        answers = await asyncio.gather(*(registry.admit(*batch) for batch in batches))
        assert all(isinstance(answer, NodeAdmission) for batch in answers for answer in batch)
