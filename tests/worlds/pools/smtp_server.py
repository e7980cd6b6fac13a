"""An SMTP server in a process of its own, with STARTTLS and passwords, that misbehaves as it is told.

Run as `python -m tests.worlds.pools.smtp_server FOLDER PORT MODE`. The folder holds `server.pem` and `ca.pem`; every
letter
that was taken becomes a line of `taken.jsonl` before it is acknowledged. MODE is `starttls`, `tls`, or `deaf` (it never
says a word). How it treats a letter stands in the recipient's address: `busy2-ann@…` is refused twice with 451, then
taken; see `Strange`. What it counts is kept on disk, so a server that was restarted remembers.
"""

import asyncio
import json
import ssl
import sys
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USERNAME, PASSWORD = "pool", "open sesame"
HANG_S = 3600.0


class Strange:
    """Says no, hangs up or falls silent, as the recipient's address asks, so often as it asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions: set[int] = set()

    def times(self, recipient: str, behaviour: str) -> bool:
        """Whether this recipient asks for a behaviour that it has not had often enough."""
        word = recipient.partition("-")[0]
        if word.rstrip("0123456789") != behaviour:
            return False
        wanted = int(word[len(behaviour) :] or 10**9)
        counts = self._folder / "counts"
        counts.mkdir(exist_ok=True)
        count = counts / recipient
        had = int(count.read_text()) if count.exists() else 0
        count.write_text(str(had + 1))
        return had < wanted

    async def handle_MAIL(  # noqa: N802  # aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if (self._folder / "refuse-sender").exists():
            return "550 5.7.1 We do not know this sender"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802  # aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.times(address, "unknown"):
            return "550 5.1.1 No such user here\x1b[31m"
        if self.times(address, "relay"):
            return "554 5.7.1 Relay access denied"
        if self.times(address, "busy"):
            return "451 4.3.0 Try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        [recipient] = envelope.rcpt_tos
        if self.times(recipient, "content"):
            return "554 5.6.0 We do not like what it says"
        if self.times(recipient, "hang"):
            await asyncio.sleep(HANG_S)
        if self.times(recipient, "slow"):
            await asyncio.sleep(0.5)
        if self.times(recipient, "closing"):
            server.transport.close()
            return "421 4.3.2 Shutting down"
        self._take(recipient, session, envelope)
        if self.times(recipient, "forgetful"):  # taken, and gone before it said so
            server.transport.abort()
        return "250 2.0.0 Queued as 42"

    def _take(self, recipient: str, session: Session, envelope: Envelope) -> None:
        assert isinstance(envelope.content, bytes)
        line = {
            "recipient": recipient,
            "sender": envelope.mail_from,
            "content": envelope.content.decode("ascii"),
            "tls": session.ssl is not None,
            "as": session.authenticated,
            "connection": id(session),
        }
        with (self._folder / "taken.jsonl").open("a") as taken:
            taken.write(json.dumps(line) + "\n")


class StrangeServer(SMTP):
    """Can hang up in the middle of a letter."""

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802  # aiosmtpd's name
        assert self.envelope
        if self.envelope.rcpt_tos and self.event_handler.times(self.envelope.rcpt_tos[0], "drop"):
            await self.push("354 Go on")
            await asyncio.sleep(0.01)
            assert self.transport
            self.transport.abort()
            return
        await super().smtp_DATA(arg)


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: object) -> AuthResult:
    right = isinstance(given, LoginPassword) and given == LoginPassword(USERNAME.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


async def serve(folder: Path, port: int, mode: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    strange = Strange(folder)

    def protocol() -> asyncio.Protocol:
        if mode == "deaf":
            return asyncio.Protocol()
        starttls = mode == "starttls"
        return StrangeServer(
            strange,
            hostname="mail.test",
            tls_context=context if starttls else None,
            require_starttls=starttls,
            authenticator=_authenticate,
            auth_required=True,
            auth_require_tls=starttls,
        )

    server = await asyncio.get_running_loop().create_server(
        protocol, "127.0.0.1", port, ssl=context if mode == "tls" else None
    )
    (folder / "ready").touch()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
