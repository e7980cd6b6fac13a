"""Asks people at a terminal. Questions go to stderr, so that stdout holds only the result.

No secret is ever an argument of a command: every user of the machine could read it.
"""

import getpass
import sys
from collections.abc import Callable
from typing import Any

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.accounts.lockout import LoginRefusal

_TWICE_TRIES = 3


def ask(question: str, *, otherwise: str) -> str:
    """Ask for one line. Without a terminal, `otherwise` says what to do instead."""
    _need_terminal(question, otherwise)
    sys.stderr.write(f"{question}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.strip():
        raise CommandRefused(f"Nothing was entered. {otherwise}")
    return answer.strip()


def ask_password(question: str, *, otherwise: str) -> str:
    """Ask for a password, which does not appear on the screen."""
    _need_terminal(question, otherwise)
    try:
        return getpass.getpass(f"{question}: ")
    except EOFError:
        raise CommandRefused(f"Nothing was entered. {otherwise}") from None


def ask_new_password(*, otherwise: str) -> str:
    """Ask for a password twice, since nobody sees it."""
    sys.stderr.write("A password has 8 characters or more, letters and digits; or it is a passphrase of 16 or more.\n")
    for _ in range(_TWICE_TRIES):
        password = ask_password("New password", otherwise=otherwise)
        if password == ask_password("The same again", otherwise=otherwise):
            return password
        sys.stderr.write("These are not the same.\n")
    raise CommandRefused("No password was typed twice in the same way: begin again.")


def password_from_stdin() -> str:
    """The password in the first line of stdin, from a script."""
    try:
        password = sys.stdin.readline().rstrip("\r\n")
    except UnicodeDecodeError:
        raise CommandRefused("The password on stdin is not UTF-8: send it as such.") from None
    if not password:
        raise CommandRefused("There is no password on stdin: send it as the first line.")
    return password


def ask_code(question: str = "Code of your authenticator, or a recovery code") -> str:
    return ask(question, otherwise="Run this at a terminal, or log in with --code.")


def with_code(call: Callable[[str | None], Any], code: str | None = None) -> Any:
    """Call with the given code. If the pool wants a second factor and no code was given, ask for it."""
    try:
        return call(code)
    except PoolRefused as refused:
        if refused.code != LoginRefusal.SECOND_FACTOR_NEEDED.code or code is not None:
            raise
    return call(ask_code())


def _need_terminal(question: str, otherwise: str) -> None:
    if not sys.stdin.isatty():
        raise CommandRefused(f"There is no terminal to ask on ({question.lower()}). {otherwise}")
