"""`tidemill setup|register|confirm|forgot|reset`: how to get an account without a browser.

A mailed proof may be given as its code or as the whole link.
"""

from typing import Annotated

import typer

from tidemill.cli.accounts.account import EMAIL_OTHERWISE, Email, Where, log_in
from tidemill.cli.accounts.second_factor import switch_on
from tidemill.cli.client.http_calls import PoolClient, PoolRefused, pool_address
from tidemill.cli.client.identity import named_url
from tidemill.cli.client.pool_caller import pool_named
from tidemill.cli.terminal.output import AsJson, CommandRefused, report
from tidemill.cli.terminal.questions import ask, ask_new_password, ask_password
from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.roles import CHOSEN_FREELY, Role
from tidemill.host.standard_error import say

Mailed = Annotated[
    str | None, typer.Option("--code", help="The code in the letter, or its whole link; asked for if it is missing.")
]

_NEEDS_TERMINAL = "Run this at a terminal."


def set_up(
    link: Annotated[
        str | None,
        typer.Argument(help="What `tidemill up` printed as `set up`; asked for if it is missing.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the first operator's account of a new pool.

    The account gets its second factor at once.
    """
    pool, token = _from_link(link or ask("Set-up link", otherwise=_NEEDS_TERMINAL))
    address = ask("E-mail address", otherwise=_NEEDS_TERMINAL)
    password = ask_new_password(otherwise=_NEEDS_TERMINAL)
    pool.ask("POST", "/setup", {"token": token, "address": address, "password": password})
    say("The pool is set up and you are its operator. Operators use a second factor; if this is cut short, go on with")
    say(f"`tidemill login {pool.url}` and `tidemill second-factor on`.")
    switch_on(log_in(pool, address, password), as_json=as_json)


def register(
    url: Where = None,
    email: Email = None,
    role: Annotated[
        list[Role] | None, typer.Option(help="customer to buy, provider to bring machines; may be given twice.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask for an account.

    A letter to your address has the code for `tidemill confirm`.
    """
    roles = role or [Role.CUSTOMER]
    if not CHOSEN_FREELY.issuperset(roles):
        raise CommandRefused("Take on customer or provider: the other roles are given by an operator.")
    pool = pool_named(url)
    pool.expect_answer()
    address = _address(email)
    password = ask_new_password(otherwise=_NEEDS_TERMINAL)
    body = {"address": address, "password": password, "roles": roles}
    answer = pool.ask("POST", "/auth/register", body)
    report(f"A letter to {address} is on its way: run `tidemill confirm` with its code.", answer, as_json=as_json)


def confirm(url: Where = None, email: Email = None, code: Mailed = None, as_json: AsJson = False) -> None:
    """Prove that an address is yours, with its letter.

    The code in the letter is good, and so is its link.
    """
    pool, proof = pool_named(url), _proof(email, code)
    try:
        account = pool.ask("POST", "/auth/confirm", proof)
    except PoolRefused as refused:
        if refused.code != AccountStateRefusal.REGISTRATION_PASSWORD.code:
            raise
        password = ask_password("The password you registered with", otherwise=_NEEDS_TERMINAL)
        account = pool.ask("POST", "/auth/confirm", {**proof, "password": password})
    report("Your address is confirmed: log in with `tidemill login`.", account, as_json=as_json)


def forgot(url: Where = None, email: Email = None, as_json: AsJson = False) -> None:
    """Ask for a letter that lets you set another password.

    It has a code for `tidemill reset`.
    """
    pool, address = pool_named(url), _address(email)
    answer = pool.ask("POST", "/auth/forgot", {"address": address})
    report(f"A letter to {address} is on its way: run `tidemill reset` with its code.", answer, as_json=as_json)


def reset(url: Where = None, email: Email = None, code: Mailed = None, as_json: AsJson = False) -> None:
    """Set another password, with the code in the letter.

    Its link will do, too. Every session ends; the second factor stays.
    """
    pool, proof = pool_named(url), _proof(email, code)
    pool.ask("POST", "/auth/reset", {**proof, "password": ask_new_password(otherwise=_NEEDS_TERMINAL)})
    report("Your password is changed: log in with `tidemill login`.", {"reset": True}, as_json=as_json)


def _address(email: str | None) -> str:
    return email or ask("E-mail address", otherwise=EMAIL_OTHERWISE)


def _proof(email: str | None, code: str | None) -> dict[str, str]:
    """The mailed proof: a link names its account by itself, a code needs the address."""
    code_or_link = code or ask("Code in the letter, or its whole link", otherwise="Give it with --code.")
    _, mark, token = code_or_link.partition("#")
    return {"link": token} if mark else {"address": _address(email), "code": code_or_link}


def _from_link(link: str) -> tuple[PoolClient, str]:
    """The pool of a set-up link, unless the environment names its address, and the token in the link."""
    before, _, token = link.strip().partition("#")
    address = before.rstrip("/").removesuffix("/setup")
    if not token or not address:
        raise CommandRefused("Give the whole link that `tidemill up` printed as `set up`, with what follows the #.")
    return PoolClient(named_url() or pool_address(address)), token
