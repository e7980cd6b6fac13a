"""Accounts under many hands at once: what is good once is used once, what is bounded stays bounded."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import pyotp
import pytest

from tests.worlds.databases.keyrings import keyring_of
from tidemill.core.accounts.account import AccountStateRefusal, Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.keys import KEYS_MAX, ApiKey, KeyRefusal, write_key
from tidemill.core.accounts.kyc import Kyc, KycRefusal
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.accounts.second_factor import SECRET_BYTES, recovery_code, secret_text
from tidemill.core.accounts.sessions import Binding, Session, SessionEnd, SessionOrigin, SessionRefusal, SessionRules
from tidemill.core.clock import DAY, HOUR, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import accounts, api_keys, logins, mailed_tokens, second_factors, sessions
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.accounts.logins import LoginResult
from tidemill.store.accounts.mailed_tokens import TRIES_MAX, MailedToken, MailedTokenPurpose
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.operations import pool
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection

T = TypeVar("T")

AT_ONCE = 20
RULES = SessionRules(idle_us=DAY, lifetime_us=7 * DAY, remembered_us=30 * DAY, binding=Binding.WARN)
HERE = SessionOrigin("192.0.2.7", "a browser")


@dataclass
class Stage:
    """A database, its keyring, and an instant at which all of a test happens."""

    database: Database
    keyring: Keyring
    ids: Ids
    now: Instant

    async def each(self, work: Callable[[Connection, int], Awaitable[T]], times: int = AT_ONCE) -> list[T]:
        """Do a thing many times at once, each in a transaction of its own."""

        async def one(number: int) -> T:
            async with self.database.transaction() as transaction:
                return await work(transaction, number)

        return await asyncio.gather(*(one(number) for number in range(times)))

    async def once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.database.transaction() as transaction:
            return await work(transaction)

    async def account(self, *roles: Role, address: str = "ann@example.com") -> UUID:
        newcomer = NewAccount(
            Address(address), "a hash", frozenset(roles) or frozenset({Role.CUSTOMER}), Language.ENGLISH
        )
        made = await self.once(lambda transaction: accounts.make(transaction, newcomer, self.ids, self.now))
        assert isinstance(made, UUID), made
        return made

    async def letter(
        self, purpose: MailedTokenPurpose, account_id: UUID | None, address: str = "ann@example.com"
    ) -> str:
        """A letter whose code is 12345678; answers its link."""
        link, token = secrets.token_urlsafe(32), MailedToken(self.ids.new(self.now), purpose, Address(address))
        if account_id is None:
            token = replace(token, password_hash="h", roles=frozenset({Role.CUSTOMER}), language=Language.ENGLISH)
        token = replace(token, account_id=account_id)
        until = Instant(self.now + HOUR)
        await self.once(
            lambda transaction: mailed_tokens.make(
                transaction, token, link=link, code="12345678", expires_at=until, keyring=self.keyring
            )
        )
        return link

    async def session(self, account_id: UUID, token: str) -> Session:
        session = Session(
            id=self.ids.new(self.now),
            account_id=account_id,
            began_at=self.now,
            seen_at=self.now,
            fresh_at=self.now,
            expires_at=Instant(self.now + DAY),
            address=HERE.address,
            user_agent=HERE.user_agent,
            remember=False,
            second_factor=False,
            ended_at=None,
            ended_why=None,
        )
        await self.once(lambda transaction: sessions.begin(transaction, session, token, self.ids, self.now))
        return session

    def key(self, account_id: UUID, **changed: object) -> ApiKey:
        key_id = self.ids.new(self.now)
        key = ApiKey(key_id, account_id, "a key", Role.CUSTOMER, frozenset({Scope.ACCOUNT_READ}), self.now, key_id)
        return replace(key, **changed)  # type: ignore[arg-type]

    async def keep(self, key: ApiKey) -> ApiKey | KeyRefusal:
        return await self.once(lambda transaction: api_keys.make(transaction, key, new_secret(), self.ids, self.now))


@pytest.fixture
async def stage(urls: DatabaseUrls, ids: Ids) -> AsyncIterator[Stage]:
    database = await Database.open(urls.program, DatabaseLimits(AT_ONCE, statement_s=30, lock_s=20), "test")
    async with database.connection() as connection:
        now = await read_clock(connection)
    yield Stage(database, await keyring_of(database, ids, now), ids, now)
    await database.close()


def new_secret() -> str:
    return write_key(secrets.token_bytes(40))


async def test_one_link_confirms_once_however_many_follow_it_at_once(stage: Stage) -> None:
    link = await stage.letter(MailedTokenPurpose.REGISTER, None)
    used = await stage.each(
        lambda transaction, _: mailed_tokens.use_link(transaction, link, [MailedTokenPurpose.REGISTER], stage.now)
    )
    assert Counter(token is not None for token in used) == {True: 1, False: AT_ONCE - 1}


async def test_one_right_code_is_used_once_however_many_type_it_at_once(stage: Stage) -> None:
    await stage.letter(MailedTokenPurpose.REGISTER, None)
    used = await stage.each(
        lambda transaction, _: mailed_tokens.use_code(
            transaction, Address("Ann@example.com"), "12345678", [MailedTokenPurpose.REGISTER], stage.keyring, stage.now
        )
    )
    assert sum(token is not None for token in used) == 1


async def test_wrong_codes_typed_at_once_count_and_end_the_code_but_not_the_link(stage: Stage) -> None:
    account_id = await stage.account()
    link = await stage.letter(MailedTokenPurpose.RESET, account_id)
    address, purposes = Address("ann@example.com"), [MailedTokenPurpose.RESET]

    async def typed(transaction: Connection, code: str) -> MailedToken | None:
        return await mailed_tokens.use_code(transaction, address, code, purposes, stage.keyring, stage.now)

    assert set(await stage.each(lambda transaction, number: typed(transaction, f"{number:08}"))) == {None}
    async with stage.database.connection() as connection:
        assert await connection.fetchval("SELECT tries FROM mailed_token") == TRIES_MAX, "no try beyond the bound"
    assert await stage.once(lambda transaction: typed(transaction, "12345678")) is None, "the right code is too late"
    used = await stage.once(lambda transaction: mailed_tokens.use_link(transaction, link, purposes, stage.now))
    assert used is not None
    assert used.account_id == account_id


async def test_a_letter_proves_only_what_it_was_written_for_and_only_in_time(stage: Stage) -> None:
    link = await stage.letter(MailedTokenPurpose.RESET, await stage.account())
    later = Instant(stage.now + HOUR)
    for purposes, now in (
        ([MailedTokenPurpose.REGISTER, MailedTokenPurpose.NEW_ADDRESS], stage.now),
        ([MailedTokenPurpose.RESET], later),
    ):
        found = await stage.once(
            lambda transaction, p=purposes, at=now: mailed_tokens.use_link(transaction, link, p, at)  # type: ignore[misc]
        )
        assert found is None


async def test_two_registrations_of_one_address_confirmed_at_once_make_one_account(stage: Stage) -> None:
    newcomer = NewAccount(Address("ann@example.com"), "h", frozenset({Role.CUSTOMER}), Language.ENGLISH)
    cased = replace(newcomer, address=Address("ANN@example.com"))
    made = await stage.each(
        lambda transaction, number: accounts.make(transaction, cased if number % 2 else newcomer, stage.ids, stage.now)
    )
    assert Counter(isinstance(one, UUID) for one in made) == {True: 1, False: AT_ONCE - 1}
    assert Counter(made)[AccountStateRefusal.ADDRESS_IN_USE] == AT_ONCE - 1


async def test_a_code_of_the_authenticator_is_used_once_however_many_bring_it_at_once(stage: Stage) -> None:
    account_id, secret = await stage.account(), secrets.token_bytes(SECRET_BYTES)
    totp, step = pyotp.TOTP(secret_text(secret)), stage.now // (30 * SECOND)
    recovery = recovery_code(secrets.token_bytes(10))
    await stage.once(lambda transaction: second_factors.begin(transaction, account_id, secret, stage.keyring))
    on = await stage.once(
        lambda transaction: second_factors.switch_on(
            transaction,
            account_id,
            totp.generate_otp(step - 1),
            [recovery],
            keyring=stage.keyring,
            ids=stage.ids,
            now=stage.now,
        )
    )
    assert on is None
    for code in (totp.generate_otp(step), recovery):
        used = await stage.each(
            lambda transaction, _, code=code: second_factors.use(  # type: ignore[misc]
                transaction, account_id, code, stage.keyring, stage.ids, stage.now
            )
        )
        assert sum(used) == 1
    again = await stage.once(
        lambda transaction: second_factors.use(
            transaction, account_id, totp.generate_otp(step - 1), stage.keyring, stage.ids, stage.now
        )
    )
    assert not again, "a code before the last one used is no good either"


async def test_two_first_codes_at_once_switch_the_second_factor_on_once(stage: Stage) -> None:
    account_id, secret = await stage.account(), secrets.token_bytes(SECRET_BYTES)
    totp, step = pyotp.TOTP(secret_text(secret)), stage.now // (30 * SECOND)
    await stage.once(lambda transaction: second_factors.begin(transaction, account_id, secret, stage.keyring))
    switched = await stage.each(
        lambda transaction, number: second_factors.switch_on(
            transaction,
            account_id,
            totp.generate_otp(step - 1 + number % 3),
            [recovery_code(secrets.token_bytes(10)) for _ in range(10)],
            keyring=stage.keyring,
            ids=stage.ids,
            now=stage.now,
        )
    )
    assert switched.count(None) == 1
    async with stage.database.connection() as connection:
        assert await second_factors.codes_left(connection, account_id) == 10


async def test_of_refreshes_with_one_token_at_once_one_goes_on_and_the_family_ends(stage: Stage) -> None:
    session = await stage.session(await stage.account(), "first")

    async def refresh(transaction: Connection, token: str, following: str) -> Session | SessionRefusal:
        return await sessions.rotate(transaction, token, following, HERE, rules=RULES, ids=stage.ids, now=stage.now)

    results = await stage.each(lambda transaction, number: refresh(transaction, "first", f"next-{number}"))
    assert Counter(isinstance(result, Session) for result in results) == {True: 1, False: AT_ONCE - 1}
    async with stage.database.connection() as connection:
        found = await sessions.holder(connection, session.id)
    assert found is not None
    assert found.session.ended_why == SessionEnd.REUSED
    for number in range(AT_ONCE):
        refused = await stage.once(lambda transaction, n=number: refresh(transaction, f"next-{n}", "more"))  # type: ignore[misc]
        assert isinstance(refused, SessionRefusal)


async def test_a_session_that_ends_while_it_is_refreshed_stays_ended(stage: Stage) -> None:
    account_id = await stage.account()
    session = await stage.session(account_id, "token-0")

    async def work(transaction: Connection, number: int) -> object:
        if number % 2:
            return await sessions.end(transaction, account_id, SessionEnd.LOGGED_OUT, ids=stage.ids, now=stage.now)
        return await sessions.rotate(
            transaction, "token-0", f"next-{number}", HERE, rules=RULES, ids=stage.ids, now=stage.now
        )

    await stage.each(work)
    async with stage.database.connection() as connection:
        found = await sessions.holder(connection, session.id)
    assert found is not None
    assert found.session.ended_at is not None


@pytest.mark.parametrize("way", ["roles", "block", "delete"])
async def test_operators_who_remove_each_other_at_once_leave_one(stage: Stage, way: str) -> None:
    people = [await stage.account(Role.OPERATOR, address=f"operator-{number}@example.com") for number in range(2)]
    on = {"ids": stage.ids, "now": stage.now}

    async def remove(transaction: Connection, number: int) -> object:
        whom, by = people[number % 2], f"account:{people[1 - number % 2]}"
        if way == "roles":
            only = frozenset({Role.CUSTOMER})
            return await accounts.give_roles(transaction, whom, only, reason="out", by=by, **on)  # type: ignore[arg-type]
        if way == "block":
            return await accounts.set_blocked(transaction, whom, blocked=True, reason="out", by=by, **on)  # type: ignore[arg-type]
        return await accounts.delete(transaction, whom, stage.ids, stage.now)

    results = await stage.each(remove)
    assert AccountStateRefusal.LAST_OPERATOR in results
    async with stage.database.connection() as connection:
        left = await accounts.listed(connection, accounts.AccountFilter(role=Role.OPERATOR, blocked=False), None, 10)
    assert len(left) == 1


async def test_a_spending_cap_holds_under_many_spenders_and_through_a_rotation(stage: Stage) -> None:
    account_id = await stage.account()
    key = await stage.keep(stage.key(account_id, spending_cap_uc=100))
    assert isinstance(key, ApiKey)
    successor = await stage.once(
        lambda transaction: api_keys.rotate(
            transaction,
            account_id,
            key.id,
            new_secret(),
            old_until=Instant(stage.now + DAY),
            ids=stage.ids,
            now=stage.now,
        )
    )
    assert isinstance(successor, ApiKey)
    spent = await stage.each(
        lambda transaction, number: api_keys.spend(transaction, (key, successor)[number % 2].id, 7)
    )
    assert Counter(spent) == {None: 14, KeyRefusal.SPENDING_CAP_REACHED: AT_ONCE - 14}
    async with stage.database.connection() as connection:
        listed = await api_keys.listed(connection, account_id, stage.now)
    assert {one.spent_uc for one in listed} == {98}
    assert await stage.once(lambda transaction: api_keys.spend(transaction, key.id, 2)) is None
    assert await stage.once(lambda transaction: api_keys.spend(transaction, key.id, 1)) is not None
    assert await stage.once(lambda transaction: api_keys.spend(transaction, key.id, 0)) is None


async def test_an_account_has_no_more_keys_than_it_may_however_they_are_made(stage: Stage) -> None:
    account_id = await stage.account()
    for _ in range(KEYS_MAX - 5):
        assert isinstance(await stage.keep(stage.key(account_id)), ApiKey)
    async with stage.database.connection() as connection:
        old = (await api_keys.listed(connection, account_id, stage.now))[:10]

    async def work(transaction: Connection, number: int) -> ApiKey | KeyRefusal:
        if number % 2:
            key = stage.key(account_id)
            return await api_keys.make(transaction, key, new_secret(), stage.ids, stage.now)
        until = Instant(stage.now + DAY)
        which = old[number // 2].id
        return await api_keys.rotate(
            transaction, account_id, which, new_secret(), old_until=until, ids=stage.ids, now=stage.now
        )

    made = await stage.each(work)
    assert Counter(type(one) for one in made) == {ApiKey: 5, KeyRefusal: AT_ONCE - 5}
    async with stage.database.connection() as connection:
        assert len(await api_keys.listed(connection, account_id, stage.now)) == KEYS_MAX


async def test_a_key_rotated_by_many_at_once_has_one_successor(stage: Stage) -> None:
    account_id = await stage.account()
    key = await stage.keep(stage.key(account_id))
    assert isinstance(key, ApiKey)
    until = Instant(stage.now + DAY)
    rotated = await stage.each(
        lambda transaction, _: api_keys.rotate(
            transaction, account_id, key.id, new_secret(), old_until=until, ids=stage.ids, now=stage.now
        )
    )
    assert Counter(rotated)[KeyRefusal.KEY_ROTATED] == AT_ONCE - 1


async def test_no_key_of_another_account_can_be_rotated_or_revoked(stage: Stage) -> None:
    owner, other = await stage.account(), await stage.account(address="eve@example.com")
    key = await stage.keep(stage.key(owner))
    assert isinstance(key, ApiKey)
    until = Instant(stage.now + DAY)
    rotated = await stage.once(
        lambda transaction: api_keys.rotate(
            transaction, other, key.id, new_secret(), old_until=until, ids=stage.ids, now=stage.now
        )
    )
    revoked = await stage.once(lambda transaction: api_keys.revoke(transaction, other, key.id, stage.ids, stage.now))
    assert (rotated, revoked) == (KeyRefusal.UNKNOWN_KEY, KeyRefusal.UNKNOWN_KEY)


async def test_the_set_up_link_makes_one_operator_however_many_use_it_at_once(stage: Stage) -> None:
    await stage.once(lambda transaction: pool.new_set_up_link(transaction, "the link"))

    async def use(transaction: Connection, number: int) -> UUID | AccountStateRefusal:
        address = Address(f"first-{number}@example.com")
        newcomer = NewAccount(address, "h", frozenset({Role.OPERATOR}), Language.ENGLISH)
        return await pool.set_up(transaction, "the link", newcomer, stage.ids, stage.now)

    made = await stage.each(use)
    assert Counter(made)[AccountStateRefusal.SET_UP_ALREADY] == AT_ONCE - 1
    async with stage.database.connection() as connection:
        assert len(await accounts.listed(connection, accounts.AccountFilter(), None, 100)) == 1
        assert not await pool.new_set_up_link(connection, "another link")


async def test_a_demonstration_and_a_set_up_at_once_are_one_of_them(stage: Stage) -> None:
    await stage.once(lambda transaction: pool.new_set_up_link(transaction, "the link"))

    async def use(transaction: Connection, number: int) -> bool:
        if number % 2:
            return await pool.demonstrate(transaction, stage.now)
        address = Address(f"first-{number}@example.com")
        newcomer = NewAccount(address, "h", frozenset({Role.OPERATOR}), Language.ENGLISH)
        return isinstance(await pool.set_up(transaction, "the link", newcomer, stage.ids, stage.now), UUID)

    assert sum(await stage.each(use)) == 1


async def test_a_request_to_be_verified_and_its_decision_follow_the_table_at_once(stage: Stage) -> None:
    account_id = await stage.account(Role.PROVIDER)
    submitted = await stage.each(
        lambda transaction, _: accounts.submit_kyc(transaction, account_id, stage.ids, stage.now)
    )
    assert Counter(submitted)[KycRefusal.KYC_STATE] == AT_ONCE - 1
    decided = await stage.each(
        lambda transaction, _: accounts.decide_kyc(
            transaction, account_id, Kyc.VERIFIED, reason="seen", by="ann", ids=stage.ids, now=stage.now
        )
    )
    assert Counter(isinstance(one, Refusal) for one in decided) == {True: AT_ONCE - 1, False: 1}


async def test_failures_count_for_one_network_and_a_success_there_begins_anew(stage: Stage) -> None:
    account_id, address = await stage.account(), Address("ann@example.com")
    there = SessionOrigin("198.51.100.9", "another browser")
    since = Instant(stage.now - HOUR)

    async def tried(device: SessionOrigin, result: LoginResult, after_s: int) -> None:
        at = Instant(stage.now + after_s * SECOND)
        await stage.once(
            lambda transaction: logins.record(transaction, address, account_id, device, result, ids=stage.ids, now=at)
        )

    async def counted(device: SessionOrigin, whose: UUID | None = account_id) -> tuple[int, int, bool]:
        async with stage.database.connection() as connection:
            failures = await logins.failures(connection, address, whose, device, since)
        return failures.here, failures.everywhere, failures.known_network

    for second in (1, 2, 3):
        await tried(there, LoginResult.FAILED, second)
    await tried(HERE, LoginResult.CODE_WRONG, 4)
    assert await counted(HERE) == (1, 4, False)
    assert await counted(there) == (3, 4, False)
    await tried(HERE, LoginResult.OK, 5)
    assert await counted(HERE) == (0, 4, True)
    assert await counted(there) == (3, 4, False), "the owner's success does not help the stranger"
    assert await counted(there, None) == (3, 4, False), "an address without an account is counted alike"
