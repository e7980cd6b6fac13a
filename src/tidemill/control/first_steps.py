"""The first steps of a pool: the link that makes its first operator, or the accounts of a demonstration.

A demonstration is for this machine only, and its database remembers that it is one: it never serves anybody else.
"""

import secrets
from collections.abc import Mapping
from enum import Enum
from uuid import UUID

import pyotp

from tidemill.control.context import Control
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.roles import Role
from tidemill.core.accounts.second_factor import SECRET_BYTES, secret_text
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.core.money import CREDIT_UC
from tidemill.core.pool_urls import is_loopback
from tidemill.core.settings.reaching import own_address
from tidemill.store import accounts, ledger, pool, second_factors
from tidemill.store.accounts import Newcomer
from tidemill.store.query import Connection

_OPERATOR = "operator@demo.example"
_CUSTOMER = "customer@demo.example"
_PLAY_MONEY_UC = 100 * CREDIT_UC
_DEMONSTRATION = {
    _OPERATOR: frozenset({Role.OPERATOR}),
    "provider@demo.example": frozenset({Role.PROVIDER}),
    _CUSTOMER: frozenset({Role.CUSTOMER}),
}


class FirstStep(Enum):
    """What a starting process does for a pool that nobody uses yet."""

    NOTHING = "nothing"
    LINK = "link"
    DEMONSTRATION = "demonstration"


async def first_steps(control: Control, step: FirstStep) -> Mapping[str, str]:
    """What the greeting says besides. A fault if the pool is not what it is started as."""
    async with control.requests.connection() as connection:
        state = await pool.state(connection)
    local = is_loopback(control.settings.host) and not control.settings.http.trusted_proxies
    if (state.demonstration or step is FirstStep.DEMONSTRATION) and not local:
        raise Fault("A demonstration is for this machine only: listen on 127.0.0.1, or start a pool in another home.")
    if step is FirstStep.DEMONSTRATION:
        if state.set_up and not state.demonstration:
            raise Fault("This pool is in use, so it cannot become a demonstration: give --demo a home of its own.")
        return await _demonstration(control) if not state.set_up else _ALREADY
    return await _link(control) if step is FirstStep.LINK and not state.set_up else {}


_ALREADY = {"demonstration": "its passwords were shown when it was first started"}


async def _link(control: Control) -> Mapping[str, str]:
    token = secrets.token_urlsafe(32)
    async with control.requests.connection() as connection:
        made = await pool.new_set_up_link(connection, token)
    base = control.settings.mail.public_url or own_address(control.settings)
    return {"set up": f"{base.rstrip('/')}/setup#{token}"} if made else {}


async def _demonstration(control: Control) -> Mapping[str, str]:
    """Accounts with passwords that nobody could guess, shown this once."""
    passwords = {address: f"{secrets.token_hex(8)}" for address in _DEMONSTRATION}
    hashes = {address: await control.passwords.hash(password) for address, password in passwords.items()}
    totp, now = secrets.token_bytes(SECRET_BYTES), control.clock.now()
    async with control.requests.transaction() as transaction:
        if not await pool.demonstrate(transaction, now):
            return _ALREADY
        for address, roles in _DEMONSTRATION.items():
            newcomer = Newcomer(Address(address), hashes[address], roles, Language.ENGLISH)
            made = await accounts.make(transaction, newcomer, control.ids, now)
            assert isinstance(made, UUID), "an unused pool has no accounts"
            if address == _OPERATOR:
                await _second_factor(control, transaction, made, totp, now)
            if address == _CUSTOMER:
                await _play_money(control, transaction, made, now)
    return {**passwords, "operator's authenticator secret": secret_text(totp)}


async def _play_money(control: Control, transaction: Connection, account_id: UUID, now: Instant) -> None:
    """Something to spend, from outside, as any deposit; the books say what it is."""
    play = LedgerAccount(AccountKind.EXTERNAL, name="demonstration")
    customer = LedgerAccount(AccountKind.CUSTOMER, account_id)
    await ledger.open_accounts(transaction, [play, customer], now)
    deposit = Transfer(
        control.ids.new(now), play.id, customer.id, _PLAY_MONEY_UC, customer.currency, "deposit", "demonstration"
    )
    [outcome] = await ledger.post(transaction, [deposit], control.ids, now)
    assert outcome.refusal is None, "a deposit to a new account is never refused"


async def _second_factor(
    control: Control, transaction: Connection, account_id: UUID, secret: bytes, now: Instant
) -> None:
    """Operators need one, also in a demonstration. The code before the current one switches it on."""
    await second_factors.begin(transaction, account_id, secret, control.keyring)
    code = pyotp.TOTP(secret_text(secret)).at((now - 30 * SECOND) // SECOND)
    refusal = await second_factors.switch_on(
        transaction, account_id, code, [], keyring=control.keyring, ids=control.ids, now=now
    )
    assert refusal is None
