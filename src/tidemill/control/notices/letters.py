"""Writes letters for routes: in the transaction of their cause, with a link and a code where they need one."""

import secrets
from dataclasses import dataclass

from tidemill.control.context import Control
from tidemill.core.accounts.account import Account, Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.clock import SECOND, Instant
from tidemill.core.notices.mail import Letter, LetterKind, LetterValue
from tidemill.store.accounts import mailed_tokens
from tidemill.store.accounts.mailed_tokens import MailedToken, MailedTokenPurpose
from tidemill.store.notices import mail
from tidemill.store.query import Connection

_CODE_DIGITS = 8


@dataclass(frozen=True)
class _Proof:
    """The letter that asks for a proof, and the page of its link. The token is in the fragment, which is not sent."""

    kind: LetterKind
    page: str


_PROOFS = {
    MailedTokenPurpose.REGISTER: _Proof(LetterKind.CONFIRM_ADDRESS, "/confirm"),
    MailedTokenPurpose.NEW_ADDRESS: _Proof(LetterKind.CONFIRM_NEW_ADDRESS, "/confirm"),
    MailedTokenPurpose.RESET: _Proof(LetterKind.RESET_PASSWORD, "/reset"),
}


async def ask_for_proof(
    control: Control, transaction: Connection, token: MailedToken, language: Language, now: Instant
) -> None:
    """Write the letter whose link or code proves that somebody reads this address's mail."""
    link, code = secrets.token_urlsafe(32), f"{secrets.randbelow(10**_CODE_DIGITS):0{_CODE_DIGITS}}"
    expires_at = Instant(now + int(control.settings.login.mail_token_s * SECOND))
    await mailed_tokens.make(transaction, token, link=link, code=code, expires_at=expires_at, keyring=control.keyring)
    proof = _PROOFS[token.purpose]
    parameters = {"link": f"{proof.page}#{link}", "code": code}
    await _write(control, transaction, Letter(proof.kind, token.address.text, language, parameters), now)


async def tell(
    control: Control,
    transaction: Connection,
    account: Account,
    kind: LetterKind,
    now: Instant,
    **parameters: LetterValue,
) -> None:
    """Write to an account's own address."""
    await _write(control, transaction, Letter(kind, account.address, account.language, parameters), now)


async def tell_address(
    control: Control,
    transaction: Connection,
    address: Address,
    language: Language,
    kind: LetterKind,
    now: Instant,
    **parameters: LetterValue,
) -> None:
    """Write to an address that need not be an account's."""
    await _write(control, transaction, Letter(kind, address.text, language, parameters), now)


async def may_write_to(control: Control, address: Address, purpose: MailedTokenPurpose) -> bool:
    """Whether a stranger may make us write to this address once more; they do not learn the answer. Each purpose has
    its own limit: registering somebody's address again and again must not block their letter to reset a password."""
    return (await control.limiter.allowed(f"{purpose} {address.key}", control.limits.mail)).allowed


async def _write(control: Control, transaction: Connection, letter: Letter, now: Instant) -> None:
    await mail.write(transaction, control.keyring, letter, control.ids, now)
