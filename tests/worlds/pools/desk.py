"""Somebody's own machine: the command line with a place for tokens, at a terminal or in a script."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.worlds.forks import ended
from tests.worlds.pools.people import PASSWORD, OpenSession, Person
from tests.worlds.pools.pool import TIDEMILL, clean_environment
from tests.worlds.pools.terminal import Terminal, at_terminal
from tidemill.cli.client.credentials import CredentialsFile, StoredTokens


@dataclass
class Desk:
    """Somebody's own machine: a place for their tokens, and a pool they talk to."""

    home: Path
    port: int
    config: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, **settings: str) -> dict[str, str]:
        own = {"HOME": str(self.config), "XDG_CONFIG_HOME": str(self.config), "TERM": "xterm"}
        return clean_environment(self.home, self.port, {**own, **settings})

    def start(self, *arguments: str, **settings: str) -> "subprocess.Popen[str]":
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([TIDEMILL, *arguments], env=self.environment(**settings), text=True, **streams)

    def run(self, *arguments: str, stdin: str = "", **settings: str) -> "subprocess.CompletedProcess[str]":
        return ended(*arguments, stdin=stdin, environment=self.environment(**settings), within_s=60)

    def json(self, *arguments: str, **settings: str) -> Any:
        done = self.run(*arguments, "--json", **settings)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def at_terminal(self, *arguments: str, **settings: str) -> Terminal:
        return at_terminal(self.environment(**settings), *arguments)

    def log_in(self, person: Person, *arguments: str) -> None:
        code = ["--code", person.code()] if person.totp else []
        done = self.run(
            *("login", "--email", person.address, "--password-stdin", *code, *arguments), stdin=f"{PASSWORD}\n"
        )
        assert done.returncode == 0, done.stderr

    def keep(self, person: Person, session: OpenSession, url: str | None = None) -> None:
        """Store a session, as a login does."""
        tokens = StoredTokens(
            url=url or self.url,
            address=person.address,
            session_id=str(session.id),
            session_expires_at="2030-01-01T00:00:00Z",
            access_token=session.access_token,
            refresh_token=session.refresh_token,
        )
        credentials = CredentialsFile(self.config / "tidemill" / "credentials", tokens.url)
        with credentials.locked():
            credentials.write(tokens)

    @property
    def file(self) -> Path:
        (file,) = self.files()
        return file

    def files(self) -> list[Path]:
        return sorted(self.config.rglob("credentials/*.json"))

    def stored(self) -> dict[str, str]:
        stored: dict[str, str] = json.loads(self.file.read_text())
        return stored
