"""The people of a demonstration: an operator, a customer with play money, and four owners of nodes.

Their passwords and API keys are in the pool's home, where only its owner can read them, like the operator's token. The
files are written before the accounts, so that a start that was interrupted continues with the same secrets.
"""

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pyotp

from tidemill.control.context import Control
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.keys import OF_THE_POOL, ApiKey, looks_like_key, write_key
from tidemill.core.accounts.keys import SECRET_BYTES as KEY_BYTES
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.accounts.second_factor import SECRET_BYTES, secret_text
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.core.money import CREDIT_UC
from tidemill.core.operations.demonstration import (
    CUSTOMER,
    FOLDER,
    OPERATOR,
    PEOPLE,
    address_of,
    authenticator_file,
    key_file,
    password_file,
)
from tidemill.host.private_files import make_private_file_once
from tidemill.store.accounts import accounts, api_keys, second_factors
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.ledger import ledger
from tidemill.store.operations import pool
from tidemill.store.query import Connection

_FROM_HERE = ("127.0.0.0/8", "::1/128")
_PLAY_MONEY_UC = 100 * CREDIT_UC


def key_of(home: Path, name: str) -> str:
    """A person's API key, as it was made at the first start."""
    file = key_file(home, name)
    try:
        key = file.read_text("utf-8", errors="replace").strip()
    except OSError as error:
        raise Fault(f"{file} cannot be read ({error.strerror}): begin a new demonstration in another home.") from None
    if not looks_like_key(key):
        raise Fault(f"{file} does not hold an API key any more: begin a new demonstration in another home.")
    return key


async def demonstrate(control: Control) -> None:
    """Make an unused pool a demonstration, with people in it. One that is in use stays as it is."""
    folder = control.settings.home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    passwords = {
        name: _keep_secret(password_file(control.settings.home, name), secrets.token_hex(8)) for name in PEOPLE
    }
    hashes = await asyncio.gather(*(control.passwords.hash(password) for password in passwords.values()))
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        if not await pool.demonstrate(transaction, now):
            return
        for name, password_hash in zip(PEOPLE, hashes, strict=True):
            await _make_person(control, transaction, name, password_hash, now)


def greeting(home: Path) -> Mapping[str, str]:
    """The lines about the demonstration that every start prints."""
    return {
        "accounts": f"{', '.join(PEOPLE)} @demo.example",
        "secrets": f"{home / FOLDER}: their passwords and API keys",
    }


async def _make_person(control: Control, transaction: Connection, name: str, password_hash: str, now: Instant) -> None:
    newcomer = NewAccount(Address(address_of(name)), password_hash, frozenset({PEOPLE[name]}), Language.ENGLISH)
    account_id = await accounts.make(transaction, newcomer, control.ids, now)
    assert isinstance(account_id, UUID), "an unused pool has no accounts"
    if name == OPERATOR:
        await _second_factor(control, transaction, account_id, now)
    if name == CUSTOMER:
        await _play_money(control, transaction, account_id, now)
    key = _keep_secret(key_file(control.settings.home, name), write_key(secrets.token_bytes(KEY_BYTES)))
    await api_keys.make(transaction, _api_key(control, account_id, PEOPLE[name], now), key, control.ids, now)


def _api_key(control: Control, account_id: UUID, role: Role, now: Instant) -> ApiKey:
    """A key with all scopes of its role, for this machine only."""
    scopes = frozenset(Scope) if role is Role.OPERATOR else frozenset(Scope) - OF_THE_POOL
    key_id = control.ids.new(now)
    return ApiKey(key_id, account_id, FOLDER, role, scopes, made_at=now, first_id=key_id, networks=_FROM_HERE)


async def _play_money(control: Control, transaction: Connection, account_id: UUID, now: Instant) -> None:
    """Give the customer money: a deposit from outside, whose cause names the demonstration."""
    play = LedgerAccount(AccountKind.EXTERNAL, name=FOLDER)
    customer = LedgerAccount(AccountKind.CUSTOMER, account_id)
    await ledger.open_accounts(transaction, [play, customer], now)
    deposit = Transfer(control.ids.new(now), play.id, customer.id, _PLAY_MONEY_UC, customer.currency, "deposit", FOLDER)
    [outcome] = await ledger.post(transaction, [deposit], control.ids, now)
    assert outcome.refusal is None, "a deposit to a new account is never refused"


async def _second_factor(control: Control, transaction: Connection, account_id: UUID, now: Instant) -> None:
    """Operators need one, also in a demonstration. The code before the current one switches it on."""
    secret = secrets.token_bytes(SECRET_BYTES)
    file = authenticator_file(control.settings.home, OPERATOR)
    file.unlink(missing_ok=True)  # left by a start that was interrupted before the account was made
    _keep_secret(file, secret_text(secret))
    await second_factors.begin(transaction, account_id, secret, control.keyring)
    code = pyotp.TOTP(secret_text(secret)).at((now - 30 * SECOND) // SECOND)
    refusal = await second_factors.switch_on(
        transaction, account_id, code, [], keyring=control.keyring, ids=control.ids, now=now
    )
    assert refusal is None


def _keep_secret(file: Path, text: str) -> str:
    """The secret in a file. If there is no file, it is made with `text`."""
    make_private_file_once(file, f"{text}\n")
    return file.read_text("utf-8").strip()
