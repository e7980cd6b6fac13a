"""A post office for tests: the SMTP server in its process, what it took, and the settings that lead to it."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import trustme

from tests.conftest import ROOT
from tests.worlds.pools.pool import free_port, until
from tests.worlds.pools.smtp_server import PASSWORD, USERNAME


@dataclass
class PostOffice:
    """Opened and closed by its test, or killed."""

    folder: Path
    mode: str = "starttls"
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def open(self) -> None:
        (self.folder / "ready").unlink(missing_ok=True)
        arguments = [str(self.folder), str(self.port), self.mode]
        with (self.folder / "said.txt").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.worlds.pools.smtp_server", *arguments], cwd=ROOT, stdout=said, stderr=said
            )
        until((self.folder / "ready").exists, (self.folder / "said.txt").read_text)

    def close(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    @property
    def taken(self) -> list[dict[str, Any]]:
        file = self.folder / "taken.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def recipients(self) -> Counter[str]:
        return Counter(one["recipient"] for one in self.taken)

    def message(self, recipient: str) -> EmailMessage:
        """The last letter that a recipient got."""
        content = [one["content"] for one in self.taken if one["recipient"] == recipient][-1]
        message = message_from_string(content, policy=default)
        assert isinstance(message, EmailMessage)
        return message

    def settings(self, **changed: str) -> dict[str, str]:
        """As an operator would set them, with waits that a test can wait for."""
        return {
            "TIDEMILL_MAIL_SMTP_HOST": "127.0.0.1",
            "TIDEMILL_MAIL_SMTP_PORT": str(self.port),
            "TIDEMILL_MAIL_SMTP_TLS": "tls" if self.mode == "tls" else "starttls",
            "TIDEMILL_MAIL_SMTP_CA_FILE": str(self.folder / "ca.pem"),
            "TIDEMILL_MAIL_SMTP_USERNAME": USERNAME,
            "TIDEMILL_MAIL_SMTP_PASSWORD": PASSWORD,
            "TIDEMILL_MAIL_SENDER": "pool@pool.example",
            "TIDEMILL_MAIL_PUBLIC_URL": "https://pool.example/",
            "TIDEMILL_MAIL_SMTP_DEADLINE_S": "1s",
            "TIDEMILL_MAIL_RETRY_FIRST_S": "100ms",
            "TIDEMILL_LOOPS_POLL_S": "50ms",
            "TIDEMILL_LOOPS_BACKOFF_FIRST_S": "50ms",
            "TIDEMILL_LOOPS_BACKOFF_MOST_S": "200ms",
            **changed,
        }


@contextmanager
def post_office(folder: Path, mode: str = "starttls") -> Iterator[PostOffice]:
    """An open post office with a certificate for its address."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    office = PostOffice(folder, mode)
    office.open()
    try:
        yield office
    finally:
        office.close()
