"""People for tests of a running pool: accounts made in its database, what they show at the door, and their letters.

What a test does not ask about is made through the store, with real hashes, seals and signatures, because it is quick;
what it does ask about goes over HTTP.
"""

import asyncio
import itertools
import secrets
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

import httpx2
import jwt
import pyotp
from argon2 import PasswordHasher
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.worlds.databases.deposits import deposit
from tests.worlds.pools.pool import Running
from tidemill.control.accounts.passwords import MEMORY_KIB, ROUNDS
from tidemill.control.operations.master_key import open_keyring
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.keys import SECRET_BYTES as KEY_BYTES
from tidemill.core.accounts.keys import ApiKey, write_key
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.accounts.second_factor import SECRET_BYTES, recovery_code, secret_text
from tidemill.core.accounts.sessions import Session
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes import passes
from tidemill.core.nodes.admission import Applicant, DoorRules
from tidemill.core.nodes.join_tokens import JoinToken, sha256
from tidemill.core.notices.mail import Letter, LetterKind
from tidemill.core.refusals import Refusal
from tidemill.core.settings import build
from tidemill.core.signatures import Identity, fingerprint
from tidemill.store.accounts import accounts, api_keys, second_factors, sessions, signing_keys
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.accounts.signing_keys import SigningKey
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.embedded import attach
from tidemill.store.nodes import admission, join_tokens
from tidemill.store.nodes.admission import AdmissionDesk, NodeAdmission
from tidemill.store.notices import mail
from tidemill.store.operations.keyring import Keyring
from tidemill.store.operations.pool_secrets import load_identity
from tidemill.store.query import Connection

PASSWORD = "correct horse 4 battery"
MANY: Mapping[str, str] = {
    "TIDEMILL_LIMITS_STRANGER_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_ACCOUNT_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_DATA_CENTRE_ACCOUNT_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_ORDERS_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_CREDENTIALS_PER_HOUR": "1000000",
    "TIDEMILL_LIMITS_CUSTOMER_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_OPERATOR_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_DATA_CENTRE_PER_MINUTE": "1000000",
    "TIDEMILL_LIMITS_LOGIN_PER_MINUTE": "1000000",
}
"""Settings of a pool whose limits are not what a test is about."""

T = TypeVar("T")

_STEP_S = 30
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Person:
    """An account and what its owner knows."""

    id: UUID
    address: str
    password: str = PASSWORD
    totp: pyotp.TOTP | None = None
    recovery_codes: tuple[str, ...] = ()
    steps: list[int] = field(default_factory=list)

    def code(self) -> str:
        """The next code that was not shown yet. It waits for the time when there is none."""
        assert self.totp, "this person has no second factor"
        step = max(int(time.time()) // _STEP_S - 1, self.steps[-1] + 1 if self.steps else 0)
        self.steps.append(step)
        time.sleep(max(0.0, (step - 1) * _STEP_S - time.time() + 0.05))
        return self.totp.generate_otp(step)


@dataclass(frozen=True)
class Key:
    """An API key as its owner has it."""

    id: UUID
    secret: str

    @property
    def bearer(self) -> dict[str, str]:
        return bearer(self.secret)


@dataclass(frozen=True)
class OpenSession:
    """A session as its owner has it."""

    id: UUID
    access_token: str
    refresh_token: str

    @property
    def bearer(self) -> dict[str, str]:
        return bearer(self.access_token)


@dataclass(frozen=True)
class Machine:
    """A node as its agent knows it."""

    id: UUID
    identity: Identity
    pool_fingerprint: str

    def shown(self, lasting_s: float = 300) -> dict[str, str]:
        """A new pass, as it goes into a request."""
        until = Instant(time.time_ns() // 1000 + int(lasting_s * SECOND))
        return {"Authorization": f"Node {passes.write_pass(self.identity, self.pool_fingerprint, self.id, until)}"}


class People:
    """The people of one pool. It works in the pool's database, beside its processes."""

    def __init__(self, database: Database, keyring: Keyring, runner: asyncio.Runner) -> None:
        self.database = database
        self.keyring = keyring
        self.ids = Ids(secrets.randbits)
        self._runner = runner

    def person(self, *roles: Role, second_factor: bool = False, address: str | None = None) -> Person:
        """A new account; a customer unless the test says otherwise."""
        made = address or f"person-{next(_numbers)}@people.example"
        return self._runner.run(self._person(made, frozenset(roles) or frozenset({Role.CUSTOMER}), second_factor))

    def session(self, person: Person, *, second_factor: bool | None = None, age_s: float = 0) -> OpenSession:
        """A session that began so long ago, as after a login."""
        shown = person.totp is not None if second_factor is None else second_factor
        return self._runner.run(self._session(person, shown, age_s))

    def key(self, person: Person, role: Role, *scopes: Scope, **changed: Any) -> Key:
        return self._runner.run(self._key(person, role, frozenset(scopes), changed))

    def node(self, person: Person) -> UUID:
        """A machine that joined in somebody's name and is connected."""
        return self._runner.run(self._node(person, secrets.token_bytes(32)))

    def machine(self, person: Person) -> Machine:
        """The same with its own key."""
        identity = Identity(secrets.token_bytes(32))
        node_id = self._runner.run(self._node(person, identity.key))
        return Machine(node_id, identity, self._runner.run(self._fingerprint()))

    def deposit(self, person: Person, amount_uc: int) -> None:
        """Put money into somebody's account."""
        self._runner.run(self._deposit(person, amount_uc))

    def block(self, person: Person) -> None:
        self._runner.run(self._block(person))

    def revoke(self, person: Person, key: Key) -> None:
        self._runner.run(self._revoke(person, key))

    def letters(self, address: str) -> list[Letter]:
        """What was written to an address, oldest first."""
        return self._runner.run(self._letters(address))

    def letter(self, address: str, kind: LetterKind) -> Letter:
        """The newest letter of a kind to an address."""
        found = [letter for letter in self.letters(address) if letter.kind is kind]
        assert found, f"no {kind} to {address}"
        return found[-1]

    def signing_key(self) -> SigningKey:
        """The key that signs the pool's access tokens."""
        return self._runner.run(self._signing_key())

    def access_token(self, session_id: UUID, account_id: UUID, lasting_s: int = 300, **changed: Any) -> str:
        """A token as the pool would sign it, for so long."""
        key, now_s = self.signing_key(), int(time.time())
        claims = {"sub": str(account_id), "sid": str(session_id), "iat": now_s, "exp": now_s + lasting_s, **changed}
        private = Ed25519PrivateKey.from_private_bytes(key.private)
        return jwt.encode(claims, private, "EdDSA", headers={"kid": str(key.id)})

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Something in the pool's database."""
        return self._runner.run(work)

    def rows(self, sql: str) -> list[Any]:
        """What the pool's database says, asked directly."""
        return self._runner.run(self._rows(sql))

    async def _rows(self, sql: str) -> list[Any]:
        async with self.database.connection() as connection:
            return await connection.fetch(sql)

    async def now(self, connection: Connection) -> Instant:
        return await read_clock(connection)

    async def _deposit(self, person: Person, amount_uc: int) -> None:
        async with self.database.connection() as connection:
            now = await read_clock(connection)
        await deposit(self.database, self.ids, person.id, amount_uc, now)

    async def _person(self, address: str, roles: frozenset[Role], second_factor: bool) -> Person:
        async with self.database.transaction() as transaction:
            now = await self.now(transaction)
            newcomer = NewAccount(Address(address), password_hash(), roles, Language.ENGLISH)
            account_id = await accounts.make(transaction, newcomer, self.ids, now)
            assert isinstance(account_id, UUID), account_id
            person = Person(account_id, address)
            return await self._with_second_factor(transaction, person, now) if second_factor else person

    async def _with_second_factor(self, transaction: Connection, person: Person, now: Instant) -> Person:
        secret = secrets.token_bytes(SECRET_BYTES)
        codes = tuple(recovery_code(secrets.token_bytes(10)) for _ in range(10))
        totp, step = pyotp.TOTP(secret_text(secret)), now // SECOND // _STEP_S - 1
        await second_factors.begin(transaction, person.id, secret, self.keyring)
        refusal = await second_factors.switch_on(
            transaction, person.id, totp.generate_otp(step), codes, keyring=self.keyring, ids=self.ids, now=now
        )
        assert refusal is None, refusal
        return replace(person, totp=totp, recovery_codes=codes, steps=[step])

    async def _session(self, person: Person, second_factor: bool, age_s: float) -> OpenSession:
        async with self.database.transaction() as transaction:
            now = await self.now(transaction)
            began = Instant(now - int(age_s * SECOND))
            session = Session(
                id=self.ids.new(now),
                account_id=person.id,
                began_at=began,
                seen_at=began,
                fresh_at=began,
                expires_at=Instant(began + 7 * DAY),
                address="127.0.0.1",
                user_agent="a test",
                remember=False,
                second_factor=second_factor,
                ended_at=None,
                ended_why=None,
            )
            token = secrets.token_urlsafe(32)
            await sessions.begin(transaction, session, token, self.ids, began)
            key = await signing_keys.listed(transaction, self.keyring)
        return OpenSession(session.id, _signed(key[0], session), token)

    async def _key(self, person: Person, role: Role, scopes: frozenset[Scope], changed: dict[str, Any]) -> Key:
        async with self.database.transaction() as transaction:
            now = await self.now(transaction)
            key_id, secret = self.ids.new(now), write_key(secrets.token_bytes(KEY_BYTES))
            key = ApiKey(key_id, person.id, "a test's key", role, scopes, now, key_id)
            made = await api_keys.make(transaction, replace(key, **changed), secret, self.ids, now)
            assert isinstance(made, ApiKey), made
        return Key(key_id, secret)

    async def _block(self, person: Person) -> None:
        async with self.database.transaction() as transaction:
            now = await self.now(transaction)
            blocked = await accounts.set_blocked(
                transaction, person.id, blocked=True, reason="a test", by="a test", ids=self.ids, now=now
            )
            assert not isinstance(blocked, Refusal), blocked

    async def _revoke(self, person: Person, key: Key) -> None:
        async with self.database.transaction() as transaction:
            # A process's clock may be some milliseconds behind the database's.
            since = Instant(await self.now(transaction) - SECOND)
            assert await api_keys.revoke(transaction, person.id, key.id, self.ids, since) is None

    async def _fingerprint(self) -> str:
        now = Instant(time.time_ns() // 1000)
        pool = await load_identity(self.database, self.keyring, self.ids, now, secrets.token_bytes)
        return fingerprint(pool.key)

    async def _node(self, person: Person, key: bytes) -> UUID:
        async with self.database.transaction() as transaction:
            now = await self.now(transaction)
            secret, until = secrets.token_hex(32), Instant(now + DAY)
            token = JoinToken(self.ids.new(now), person.id, "rack", sha256(secret), False, ["rack=7"], 1, 0, now, until)
            await join_tokens.make(transaction, token, by="test", ids=self.ids, now=now)
            rules = DoorRules(beat_us=30 * SECOND, oldest_agent="0.1")
            door = AdmissionDesk(self.ids.new(now), rules, self.keyring, self.ids)
            caller = Applicant(key, self.ids.new(now), "tidemill/0.1", "198.51.100.7", None, sha256(secret))
            (answer,) = await admission.admit(transaction, [caller], door, now)
            assert isinstance(answer, NodeAdmission), answer
            return answer.node_id

    async def _letters(self, address: str) -> list[Letter]:
        async with self.database.connection() as connection:
            newest = await mail.newest(connection, 10_000)
            found = [await mail.find(connection, letter.id) for letter in newest if letter.recipient == address]
            return [await mail.opened(self.keyring, letter) for letter in reversed(found) if letter]

    async def _signing_key(self) -> SigningKey:
        async with self.database.connection() as connection:
            return (await signing_keys.listed(connection, self.keyring))[0]


@contextmanager
def people_of(running: Running) -> Iterator[People]:
    """The people of a pool that runs; they share its database and its master key."""
    with asyncio.Runner() as runner:
        database, keyring = runner.run(_opened(running))
        try:
            yield People(database, keyring, runner)
        finally:
            runner.run(database.close())


async def _opened(running: Running) -> tuple[Database, Keyring]:
    settings = build(toml={}, toml_name="", environment={}, home=running.home).settings
    database = await Database.open(attach(running.home).program, DatabaseLimits(20, 30, 10), "test")
    async with database.connection() as connection:
        now = await read_clock(connection)
    return database, await open_keyring(database, settings, Ids(secrets.randbits), now)


@cache
def password_hash() -> str:
    """The hash of everybody's password, made once: it is slow, as it is meant to be."""
    return PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY_KIB, parallelism=1).hash(PASSWORD)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def code_of(answer: httpx2.Response) -> str:
    """The code of a problem; of anything else nothing."""
    is_problem = answer.headers.get("content-type", "") == "application/problem+json"
    if not is_problem or answer.request.method == "HEAD":
        return answer.headers.get("tidemill-problem", "")
    assert answer.headers["tidemill-problem"] == answer.json()["code"]
    return str(answer.json()["code"])


def log_in(running: Running, person: Person, *, code: str | None = None, **asked: Any) -> httpx2.Response:
    """Through the door, as a program does."""
    headers: Mapping[str, str | bytes] = asked.pop("headers", {})
    body = {"address": person.address, "password": person.password, "code": code, **asked}
    return running.post("/api/v1/auth/login", json=body, headers=headers)


def link_of(letter: Letter) -> str:
    """What follows the # in a letter's link."""
    return str(letter.parameters["link"]).partition("#")[2]


def _signed(key: SigningKey, session: Session) -> str:
    now_s = int(time.time())
    claims = {"sub": str(session.account_id), "sid": str(session.id), "iat": now_s, "exp": now_s + 300}
    private = Ed25519PrivateKey.from_private_bytes(key.private)
    return jwt.encode(claims, private, "EdDSA", headers={"kid": str(key.id)})
