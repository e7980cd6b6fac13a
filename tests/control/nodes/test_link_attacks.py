"""At the door of a real pool: stolen tokens, replayed hellos, clones, false pools and old versions.

Each is refused with a reason, and there is an event that says so.
"""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from uuid import UUID

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import join_token
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.accounts.roles import Role
from tidemill.core.clock import Instant
from tidemill.core.nodes.join_tokens import JoinTokenParts, read_token
from tidemill.core.notices.mail import LetterKind
from tidemill.core.signatures import SEED_BYTES, Identity
from tidemill.wire import handshake
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink, Closed, Instructed, Joined, LinkEvent, TurnedAway
from tidemill.wire.link_frames import agent_end
from tidemill.wire.messages import Challenge, Hello, Instruction, Wish, encode

NOW = Instant(1)


@dataclass
class Door:
    """A pool, its people, and one owner with tokens."""

    running: Running
    people: People
    owner: Person
    refused: set[str] = field(default_factory=set)

    def token(self, uses: int = 1) -> JoinTokenParts:
        shown = read_token(join_token(self.running, self.people, self.owner, uses))
        assert isinstance(shown, JoinTokenParts)
        return shown

    def newcomer(self, token: JoinTokenParts, agent: str = "tidemill/0.1.0") -> CallingAgent:
        identity = Identity(secrets.token_bytes(SEED_BYTES))
        return CallingAgent(identity, token.fingerprint, agent, secrets.token_bytes(16), join_token=token.secret_part)

    def told(self, kind: str, **body: Any) -> list[dict[str, Any]]:
        """The events of a kind with these fields."""
        wanted = body.items()
        return [event for event in self.running.events() if event["kind"] == kind and wanted <= event["body"].items()]

    def until_told(self, kind: str, **body: Any) -> None:
        until(lambda: bool(self.told(kind, **body)), lambda: f"{kind} {body}")

    def check_told(self) -> None:
        """Refusals are gathered for some seconds, so they are looked for at the end, all at once."""
        for code in self.refused:
            self.until_told("link.refused", code=code, address="127.0.0.1")


class Call:
    """One connection of an agent, and what came of it."""

    def __init__(self, connection: socket.socket, link: AgentLink, url: str) -> None:
        self.outcome: Joined | TurnedAway | Closed | None = None
        self.orders: list[Instruction] = []
        self.closed: str | None = None
        self._connection = connection
        self._framed = agent_end(link, url)

    @property
    def node_id(self) -> bytes:
        assert isinstance(self.outcome, Joined), self.outcome
        return self.outcome.node_id

    def talk(self) -> None:
        """Send what there is to say, and hear once."""
        self._send()
        for event in self._framed.receive(self._connection.recv(2**16), NOW):
            self._notice(event)
        self._send()

    def _send(self) -> None:
        self._connection.sendall(b"".join(self._framed.to_send(2**20)[0]))

    def _notice(self, event: LinkEvent) -> None:
        if isinstance(event, Closed):
            self.closed = self.closed or event.code
        if isinstance(event, Joined | TurnedAway | Closed):
            self.outcome = self.outcome or event
        elif isinstance(event, Instructed):
            self.orders.extend(event.instructions)


@contextmanager
def calling(door: Door, applicant: CallingAgent, link_class: type[AgentLink] = AgentLink) -> Iterator[Call]:
    """Dial, and talk until it is clear whether the pool lets us in."""
    link = link_class(applicant, secrets.token_bytes(32), None, NOW)
    with socket.create_connection(("127.0.0.1", door.running.port), timeout=20) as connection:
        call = Call(connection, link, f"ws://127.0.0.1:{door.running.port}/link")
        while call.outcome is None or (isinstance(call.outcome, Joined) and len(call.orders) < 2):
            call.talk()
        yield call


def refused(door: Door, applicant: CallingAgent, link_class: type[AgentLink] = AgentLink) -> str:
    """Why the pool does not let an agent in; there must be an event about it."""
    with calling(door, applicant, link_class) as call:
        assert isinstance(call.outcome, TurnedAway | Closed), call.outcome
        door.refused.add(call.outcome.code)
        return call.outcome.code


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            door = Door(running, people, people.person(Role.PROVIDER))
            yield door
            door.check_told()
        assert '"bug"' not in running.said()


def test_a_token_lets_in_as_many_as_it_says_and_no_thief_after_them(door: Door) -> None:
    token = door.token()
    with calling(door, door.newcomer(token)) as call:
        assert call.node_id
    assert refused(door, door.newcomer(token)) == "join_token_used_up"
    guess = replace(token, secret_part=token.secret_part[::-1])
    assert refused(door, door.newcomer(guess)) == "join_token_unknown"


def test_a_stolen_token_is_seen_by_its_owner_and_revoked_at_once(door: Door) -> None:
    token = door.token(uses=5)
    with calling(door, door.newcomer(token)) as thief:
        door.until_told("node.joined", node_id=str(UUID(bytes=thief.node_id)), address="127.0.0.1")
    assert door.people.letter(door.owner.address, LetterKind.NODE_JOINED)
    bearer = door.people.session(door.owner).bearer
    for one in door.running.get("/api/v1/nodes/join-tokens", headers=bearer).json()["items"]:
        gone = door.running.delete(f"/api/v1/nodes/join-tokens/{one['id']}", headers=bearer)
        assert gone.status_code == 204
    assert refused(door, door.newcomer(token)) == "join_token_revoked"


class Recording(AgentLink):
    """An agent's end whose hello is overheard."""

    said: ClassVar[Hello]

    def _answer(self, challenge: Challenge) -> None:
        super()._answer(challenge)
        assert self._hello
        Recording.said = self._hello


class Replaying(AgentLink):
    """An agent's end that says the hello that was overheard."""

    def _answer(self, challenge: Challenge) -> None:
        super()._answer(challenge)
        self._queue[-1] = encode(Recording.said)


def test_a_hello_that_was_heard_before_is_worth_nothing(door: Door) -> None:
    newcomer = door.newcomer(door.token())
    with calling(door, newcomer, Recording) as call:
        assert call.node_id
    assert refused(door, newcomer, Replaying) == "wrong_signature"


def test_a_clone_is_turned_away_while_the_node_is_there(door: Door) -> None:
    newcomer = door.newcomer(door.token())
    with calling(door, newcomer) as call:
        known = replace(newcomer, node_id=call.node_id, join_token=None)
        assert refused(door, replace(known, instance=secrets.token_bytes(16))) == "identity_in_use"
        with calling(door, known) as same_run:
            assert same_run.node_id == call.node_id, "the machine itself may call again"
    door.until_told("node.cloned", node_id=str(UUID(bytes=call.node_id)))


def test_another_key_cannot_speak_for_a_node(door: Door) -> None:
    with calling(door, door.newcomer(door.token())) as call:
        thief = replace(door.newcomer(door.token()), node_id=call.node_id, join_token=None)
    assert refused(door, thief) == "node_key_wrong"


def test_an_agent_does_not_talk_to_another_pool_than_its_own(door: Door) -> None:
    lured = replace(door.newcomer(door.token()), pool_fingerprint="0" * 64)
    assert refused(door, lured) == "wrong_pool"


class Ancient(AgentLink):
    """An agent's end that speaks a version of the link from before there was one."""

    def _answer(self, challenge: Challenge) -> None:
        super()._answer(challenge)
        self._queue[-1] = encode(handshake.hello(self._applicant, challenge, 0, self.nonce, 0))


def test_an_old_link_is_refused_and_an_old_agent_gets_no_work(door: Door) -> None:
    assert refused(door, door.newcomer(door.token()), Ancient) == "version"
    with calling(door, door.newcomer(door.token(), "tidemill/0.0.1")) as old:
        said = {order.kind: json.loads(order.body) for order in old.orders if isinstance(order, Wish)}
        assert said["versions"] == {"accepted": False, "oldest": "0.1"}, "it is let in to deliver what it finished"
    door.until_told("node.version_refused", node_id=str(UUID(bytes=old.node_id)), agent="tidemill/0.0.1")


def test_a_removed_node_is_cut_off_at_once_and_never_comes_back(door: Door) -> None:
    newcomer = door.newcomer(door.token())
    with calling(door, newcomer) as call:
        path = f"/api/v1/nodes/{UUID(bytes=call.node_id)}"
        assert door.running.delete(path, headers=door.people.session(door.owner).bearer).status_code == 200
        while call.closed is None:
            call.talk()
        assert call.closed == "node_removed"
    assert refused(door, replace(newcomer, node_id=call.node_id, join_token=None)) == "node_removed"
