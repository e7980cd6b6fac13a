"""Stored tokens are for one user and one pool, and nothing secret is sent in the clear."""

import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from tidemill.cli.client.credentials import CredentialsFile, StoredTokens, stored_sessions
from tidemill.cli.client.http_calls import pool_address
from tidemill.cli.main import app
from tidemill.cli.terminal.output import CommandRefused

URL = "https://pool.example.com"
TOKENS = StoredTokens(
    url=URL,
    address="ada@example.com",
    session_id="1",
    session_expires_at="2030-01-01T00:00:00Z",
    access_token="access",
    refresh_token="refresh",
)


@pytest.fixture
def stored(tmp_path: Path) -> CredentialsFile:
    credentials = CredentialsFile(tmp_path / "config" / "credentials", URL)
    with credentials.locked():
        credentials.write(TOKENS)
    return credentials


def test_tokens_are_read_as_they_were_written_and_are_for_their_owner_only(stored: CredentialsFile) -> None:
    assert stored.read() == TOKENS
    assert stat.S_IMODE(stored.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(stored.file.parent.stat().st_mode) == 0o700
    [(file, tokens)] = stored_sessions(stored.file.parent)
    assert (file.file, tokens) == (stored.file, TOKENS)


def test_a_lenient_umask_changes_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        credentials = CredentialsFile(tmp_path / "credentials", URL)
        with credentials.locked():
            credentials.write(TOKENS)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in credentials.file.parent.iterdir()}
    assert (modes, stat.S_IMODE(credentials.file.parent.stat().st_mode)) == ({0o600}, 0o700)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_file_that_others_can_use_is_refused(stored: CredentialsFile, mode: int) -> None:
    stored.file.chmod(mode)
    with pytest.raises(CommandRefused, match=r"chmod 600 .*tidemill logout"):
        stored.read()


def test_a_folder_that_others_can_use_is_refused(stored: CredentialsFile) -> None:
    stored.file.parent.chmod(0o770)
    with pytest.raises(CommandRefused, match="chmod 700"):
        stored.read()
    with pytest.raises(CommandRefused, match="chmod 700"), stored.locked():
        pass


@pytest.mark.needs("root")
def test_what_belongs_to_another_user_is_refused(stored: CredentialsFile) -> None:
    os.chown(stored.file, 12345, -1)
    with pytest.raises(CommandRefused, match="belongs to another user"):
        stored.read()


def test_a_link_to_another_file_is_not_followed(stored: CredentialsFile, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    stored.file.rename(elsewhere)
    stored.file.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        stored.read()
    with stored.locked():
        stored.write(TOKENS)
    assert not stored.file.is_symlink()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"url": 1}', '{"url": "x"}', "1" * 100_000, '{"a": "b"}'])
def test_a_file_that_holds_something_else_is_refused(stored: CredentialsFile, text: str) -> None:
    stored.file.write_text(text)
    with pytest.raises(CommandRefused, match="log in again"):
        stored.read()


def test_tokens_of_another_pool_are_never_used(stored: CredentialsFile) -> None:
    with stored.locked():
        stored.write(replace(TOKENS, url="https://evil.example.com"))
    with pytest.raises(CommandRefused, match="evil"):
        stored.read()


def test_each_pool_has_its_own_file(tmp_path: Path) -> None:
    urls = [
        "http://127.0.0.1:8420",
        "http://127.0.0.1:8421",
        "https://127.0.0.1:8420",
        "http://[::1]:8420",
        "http://localhost",
    ]
    files = {CredentialsFile(tmp_path, url).file for url in urls}
    assert len(files) == len(urls)
    assert {file.parent for file in files} == {tmp_path}


def test_a_draft_of_somebody_who_was_killed_is_no_obstacle(stored: CredentialsFile) -> None:
    draft = stored.file.with_suffix(".draft")
    draft.write_text("half")
    draft.chmod(0o666)
    with stored.locked():
        stored.write(TOKENS)
    assert (stored.read(), stat.S_IMODE(stored.file.stat().st_mode)) == (TOKENS, 0o600)


def test_tokens_are_not_in_what_an_error_may_show() -> None:
    assert "access'" not in repr(TOKENS)
    assert "refresh'" not in repr(TOKENS)


def test_one_at_a_time_has_the_file(stored: CredentialsFile) -> None:
    inside, most = 0, 0

    def change() -> None:
        nonlocal inside, most
        with stored.locked():
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=change) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("https://Pool.Example.com/", "https://pool.example.com"),
        ("pool.example.com", "https://pool.example.com"),
        ("https://pool.example.com:443", "https://pool.example.com"),
        ("https://pool.example.com:8443", "https://pool.example.com:8443"),
        ("http://127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("localhost:80", "http://localhost"),
        ("http://[::1]:8420", "http://[::1]:8420"),
    ],
)
def test_an_address_has_one_spelling(written: str, address: str) -> None:
    assert pool_address(written) == address
    assert pool_address(address) == address


@pytest.mark.parametrize(
    "written",
    [
        "http://pool.example.com",
        "http://192.0.2.1:8420",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://0.0.0.0:8420",
        "http://127.0.0.1@evil.example.com",
        "http://evil.example.com#@127.0.0.1",
        "http://127.0.0.1\\@evil.example.com",
        "https://user:secret@pool.example.com",
        "https://pool.example.com/path",
        "https://pool.example.com?query",
        "https://pool.example.com#part",
        "https://[::1",
        "https://pool.example.com:port",
        "https://pool.example.com:99999",
        "https://pool example.com",
        "https://../../etc",
        "ftp://pool.example.com",
        "file:///etc/passwd",
        "https://",
        "",
    ],
)
def test_an_address_to_which_nothing_secret_may_be_sent_is_refused(written: str) -> None:
    with pytest.raises(CommandRefused):
        pool_address(written)


def test_no_option_takes_a_secret_that_all_processes_could_see() -> None:
    options = set(_options(typer.main.get_command(app)))
    harmless = {"--password-stdin", "--token-file"}
    assert harmless <= options
    assert {name for name in options if re.search(r"password|token|secret", name)} == harmless


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
    for inner in getattr(command, "commands", {}).values():
        yield from _options(inner)
