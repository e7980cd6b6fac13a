"""Making accounts and proving addresses: registering, confirming, resetting, moving to another address.

Only a letter to an address says whether it has an account. What a stranger sees, and how long it takes, is the same
either way.
"""

from dataclasses import dataclass
from uuid import UUID

from tidemill.control.accounts.caller_account import locked_caller_account
from tidemill.control.context import Control
from tidemill.control.http.guard import limited, limited_by_address
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.control.notices.letters import ask_for_proof, may_write_to, tell, tell_address
from tidemill.core.accounts.account import Account, AccountStateRefusal, Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.passwords import checked_password
from tidemill.core.accounts.roles import Caller, Role
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.clock import Instant
from tidemill.core.notices.mail import LetterKind, LetterValue
from tidemill.store.accounts import accounts, logins, mailed_tokens
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.accounts.logins import LoginResult
from tidemill.store.accounts.mailed_tokens import MailedToken, MailedTokenPurpose
from tidemill.store.query import Connection

_CONFIRMABLE = (MailedTokenPurpose.REGISTER, MailedTokenPurpose.NEW_ADDRESS)
_LOGIN_PAGE = "/login"
_RESET_PAGE = "/reset"


@dataclass(frozen=True)
class MailProof:
    """What came by mail: the link's token, or an address and the code."""

    link: str | None
    address: Address | None
    code: str | None


async def register(
    control: Control, address: Address, password: str, roles: frozenset[Role], language: Language, device: SessionOrigin
) -> None:
    """Write to the address. The account is made when it is confirmed."""
    await limited_by_address(control, control.limits.door, device)
    checked = _checked(password, address)
    password_hash = await control.passwords.hash(checked)
    if not await may_write_to(control, address, MailedTokenPurpose.REGISTER):
        return
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        if account := await accounts.find(transaction, address):
            await tell(control, transaction, account, LetterKind.ADDRESS_TAKEN, now, link=_LOGIN_PAGE)
            return
        token = MailedToken(
            control.ids.new(now), MailedTokenPurpose.REGISTER, address, None, password_hash, roles, language
        )
        await ask_for_proof(control, transaction, token, language, now)


async def confirm(control: Control, proof: MailProof, password: str | None, device: SessionOrigin) -> UUID:
    """Confirm an address: make the account that was registered for it, or move the account to it.

    Confirming a registration also takes its password: else a stranger could register an address, and wait for its owner
    to confirm an account whose password the stranger knows.
    """
    await limited_by_address(control, control.limits.door, device)
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        token = await _use_token(control, transaction, proof, _CONFIRMABLE, now)
        if token and token.purpose is MailedTokenPurpose.REGISTER:
            if not await control.passwords.verify(token.password_hash, password or ""):
                raise RouteRefused(AccountStateRefusal.REGISTRATION_PASSWORD)  # rolled back: the letter is still good
            account_id = await _make(control, transaction, token, now)
        elif token:
            account_id = await _move(control, transaction, token, now)
    if token is None:
        raise RouteRefused(AccountStateRefusal.MAIL_TOKEN_UNKNOWN)
    return account_id


async def forgot(control: Control, address: Address, language: Language, device: SessionOrigin) -> None:
    """Write to the address how to set another password, or that there is no account."""
    await limited_by_address(control, control.limits.door, device)
    if not await may_write_to(control, address, MailedTokenPurpose.RESET):
        return
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await accounts.find(transaction, address)
        if account is None:
            await tell_address(control, transaction, address, language, LetterKind.NO_ACCOUNT, now)
            return
        token = MailedToken(control.ids.new(now), MailedTokenPurpose.RESET, Address(account.address), account.id)
        await ask_for_proof(control, transaction, token, account.language, now)


async def reset(control: Control, proof: MailProof, password: str, device: SessionOrigin) -> None:
    """Set another password, for a person who can read the account's mail. The second factor stays as it is.

    From then on their network may try to log in, whatever strangers do meanwhile."""
    await limited_by_address(control, control.limits.door, device)
    _checked(password, proof.address or Address(""))
    password_hash = await control.passwords.hash(password)
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        token = await _use_token(control, transaction, proof, (MailedTokenPurpose.RESET,), now)
        if token:
            _checked(password, token.address)
            account = await _account_still_at(transaction, token)
            await _set_password(control, transaction, account, password_hash, now)
            await logins.record(
                transaction, token.address, account.id, device, LoginResult.RESET, ids=control.ids, now=now
            )
    if token is None:
        raise RouteRefused(AccountStateRefusal.MAIL_TOKEN_UNKNOWN)


async def change_password(control: Control, caller: Caller, password: str) -> None:
    """Set another password, for an owner who has just typed the old one."""
    await limited(control, control.limits.door, caller.account_bucket)
    password_hash = await control.passwords.hash(password)
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        _checked(password, Address(account.address))
        await _set_password(control, transaction, account, password_hash, now, but_session=caller.session_id)


async def change_address(control: Control, caller: Caller, address: Address) -> None:
    """Write to the new address; the account moves when it is confirmed. A limit keeps callers from mass mail."""
    await limited(control, control.limits.mail, caller.account_bucket)
    if not await may_write_to(control, address, MailedTokenPurpose.NEW_ADDRESS):
        return
    now = control.clock.now()
    async with control.route_database.transaction() as transaction:
        account = await locked_caller_account(transaction, caller)
        if other := await accounts.find(transaction, address):
            await tell(control, transaction, other, LetterKind.ADDRESS_TAKEN, now, link=_LOGIN_PAGE)
            return
        token = MailedToken(control.ids.new(now), MailedTokenPurpose.NEW_ADDRESS, address, account.id)
        await ask_for_proof(control, transaction, token, account.language, now)


def _checked(password: str, address: Address) -> str:
    return unless_refused(checked_password(password, address))


async def _use_token(
    control: Control, transaction: Connection, proof: MailProof, purposes: tuple[MailedTokenPurpose, ...], now: Instant
) -> MailedToken | None:
    if proof.link:
        return await mailed_tokens.use_link(transaction, proof.link, purposes, now)
    if proof.address and proof.code:
        return await mailed_tokens.use_code(transaction, proof.address, proof.code, purposes, control.keyring, now)
    return None


async def _make(control: Control, transaction: Connection, token: MailedToken, now: Instant) -> UUID:
    assert token.password_hash
    assert token.language, "a registration has all that an account needs"
    newcomer = NewAccount(token.address, token.password_hash, token.roles, token.language)
    return unless_refused(await accounts.make(transaction, newcomer, control.ids, now))


async def _move(control: Control, transaction: Connection, token: MailedToken, now: Instant) -> UUID:
    assert token.account_id, "a new address is some account's"
    account = await accounts.locked(transaction, token.account_id)
    if account is None:
        raise RouteRefused(AccountStateRefusal.MAIL_TOKEN_UNKNOWN)
    refusal = await accounts.set_address(transaction, account.id, token.address, control.ids, now)
    if refusal:
        raise RouteRefused(refusal)
    letter_values: dict[str, LetterValue] = {"new_address": token.address.masked, "at": now, "link": _RESET_PAGE}
    await tell(control, transaction, account, LetterKind.ADDRESS_CHANGED, now, **letter_values)
    return account.id


async def _account_still_at(transaction: Connection, token: MailedToken) -> Account:
    """The account of a letter, locked. Refused if it has moved: letters to its old address prove nothing."""
    assert token.account_id, "a reset is about an account"
    account = await accounts.locked(transaction, token.account_id)
    if account is None or account.address != token.address.text:
        raise RouteRefused(AccountStateRefusal.MAIL_TOKEN_UNKNOWN)
    return account


async def _set_password(
    control: Control,
    transaction: Connection,
    account: Account,
    password_hash: str,
    now: Instant,
    *,
    but_session: UUID | None = None,
) -> None:
    how = "changed" if but_session else "reset"
    await accounts.set_password(
        transaction, account.id, password_hash, how=how, but_session=but_session, ids=control.ids, now=now
    )
    await tell(control, transaction, account, LetterKind.PASSWORD_CHANGED, now, at=now, link=_RESET_PAGE)
