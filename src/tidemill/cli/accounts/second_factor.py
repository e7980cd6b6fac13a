"""`tidemill second-factor on|off|codes`: an authenticator for your account, also over SSH without a browser."""

import io
import sys

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import SessionCaller, session_caller
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, report
from tidemill.cli.terminal.questions import ask, ask_code
from tidemill.core.accounts.second_factor import SecondFactorRefusal
from tidemill.host.standard_error import say

app = CommandGroup("An authenticator for your account: on, off, codes.")

_TRIES = 5
_ROUTE = "/account/second-factor"
_BRIGHT_ON_BLACK, _PLAIN = "\x1b[97;40m", "\x1b[0m"


@app.command()
def on(as_json: AsJson = False) -> None:
    """Switch it on: scan a QR code, type a first code, and keep ten recovery codes."""
    switch_on(session_caller(), as_json=as_json)


@app.command()
def off(as_json: AsJson = False) -> None:
    """Switch it off with one more code. Every session ends, and so do an operator's keys."""
    session = session_caller()
    session.ask("POST", f"{_ROUTE}/remove", {"code": ask_code()})
    session.forget()
    report("The second factor is off: log in again with `tidemill login`.", {"second_factor": "off"}, as_json=as_json)


@app.command()
def codes(as_json: AsJson = False) -> None:
    """Get ten new recovery codes. The old ones are no good any more."""
    _show_codes(session_caller().ask("POST", f"{_ROUTE}/recovery-codes")["recovery_codes"], as_json=as_json)


def switch_on(session: SessionCaller, *, as_json: bool) -> None:
    """Add an authenticator to the account, step by step."""
    begun = session.ask("POST", _ROUTE)
    say("Scan this with your authenticator, or type the secret into it:")
    _show_qr(begun["uri"])
    say(f"secret: {begun['secret']}")
    _show_codes(_confirmed(session), as_json=as_json)


def _confirmed(session: SessionCaller) -> list[str]:
    """Ask for the first code, several times: a typing error must not cost a new secret."""
    for _ in range(_TRIES):
        code = ask("First code of your authenticator", otherwise="Run this at a terminal.")
        try:
            confirmed: list[str] = session.ask("POST", f"{_ROUTE}/confirm", {"code": code})["recovery_codes"]
        except PoolRefused as refused:
            if refused.code != SecondFactorRefusal.CODE_WRONG.code:
                raise
            say(str(refused))
        else:
            return confirmed
    raise CommandRefused("The second factor is still off: check the clock of your device, and begin again.")


def _show_codes(recovery_codes: list[str], *, as_json: bool) -> None:
    say("Keep these recovery codes where your device is not. Each lets you in once without it. They are shown once.")
    if as_json:
        print_json({"recovery_codes": recovery_codes})
    else:
        for code in recovery_codes:
            print_line(code)


def _show_qr(uri: str) -> None:
    """Draw the QR code in characters. Scanners want dark on light, so the colours are ours, not the theme's."""
    import segno

    drawn = io.StringIO()
    segno.make_qr(uri, error="l").terminal(drawn, border=2, compact=True)
    if not sys.stderr.isatty() or not _can_show(drawn.getvalue()):
        return
    for line in drawn.getvalue().splitlines():
        sys.stderr.write(f"{_BRIGHT_ON_BLACK}{line}{_PLAIN}\n")


def _can_show(drawing: str) -> bool:
    try:
        drawing.encode(sys.stderr.encoding)
    except UnicodeEncodeError:
        return False
    return True
