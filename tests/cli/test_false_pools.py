"""What answers at a pool's address may be no pool, or no honest one."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import PASSWORD, OpenSession, Person

Answer = tuple[int, dict[str, str], str]
Asked = tuple[str, str, str | None]

LOGIN = ("login", "--email", "ada@example.com", "--password-stdin")
OURS = {"X-Request-Id": "1", "Content-Type": "application/json"}


@contextmanager
def false_pool(answer: Callable[[str], Answer]) -> Iterator[tuple[int, list[Asked]]]:
    """A server that answers every path as it likes, and notes what it was asked, with which credentials."""
    asked: list[Asked] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.command, self.path, self.headers.get("Authorization")))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body.encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_PATCH = do_GET  # noqa: N815  # the library calls them so

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def problem(code: str, detail: str) -> str:
    return json.dumps({"code": code, "detail": detail})


def test_nothing_is_sent_on_to_another_address(tmp_path: Path) -> None:
    with false_pool(lambda _: (200, OURS, "{}")) as (elsewhere, heard):
        moved = {**OURS, "Location": f"http://127.0.0.1:{elsewhere}/"}
        with false_pool(lambda _: (307, moved, "")) as (port, _):
            done = Desk(tmp_path, port, tmp_path).run(*LOGIN, stdin=f"{PASSWORD}\n")
        assert (done.returncode, "is no pool" in done.stderr) == (5, True), done.stderr
        assert heard == []


def test_a_server_that_is_no_pool_is_told_apart(tmp_path: Path) -> None:
    answers: list[Answer] = [
        (200, {}, "<html>"),
        (502, {}, "bad gateway"),
        (200, OURS, "<html>"),
        (404, OURS, "[]"),
        (401, OURS, '"no"'),
    ]
    for one in answers:
        with false_pool(lambda _, one=one: one) as (port, _):  # type: ignore[misc]
            done = Desk(tmp_path, port, tmp_path).run(*LOGIN, stdin=f"{PASSWORD}\n")
        assert (done.returncode, "is no pool" in done.stderr) == (5, True), done.stderr


def test_a_pool_cannot_drive_the_terminal(tmp_path: Path) -> None:
    nasty = "\x1b]0;owned\x07\x1b[2J\u202e"
    with false_pool(lambda _: (403, OURS, problem("x", nasty))) as (port, _):
        done = Desk(tmp_path, port, tmp_path).run(*LOGIN, stdin=f"{PASSWORD}\n")
    assert done.returncode == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stderr)


def test_where_no_pool_answers_nobody_is_sent_to_log_in(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    desk = Desk(tmp_path, 1, tmp_path)
    for done in (desk.run("login", nowhere), desk.run("whoami", TIDEMILL_URL=nowhere)):
        assert (done.returncode, f"Nothing answers at {nowhere}" in done.stderr) == (4, True), done.stderr
    with false_pool(lambda _: (200, {}, "hello")) as (port, _):
        for done in (
            desk.run("login", f"http://127.0.0.1:{port}"),
            desk.run("whoami", TIDEMILL_URL=f"http://127.0.0.1:{port}"),
        ):
            assert (done.returncode, "is no pool" in done.stderr) == (5, True), done.stderr


def test_tokens_go_to_their_own_pool_only(tmp_path: Path) -> None:
    with false_pool(lambda _: (200, OURS, "{}")) as (port, heard):
        desk = Desk(tmp_path, port, tmp_path)
        desk.keep(_ADA, _SESSION, "https://pool.example.com")
        done = desk.run("whoami", TIDEMILL_URL=desk.url)
        assert (done.returncode, "not logged in" in done.stderr) == (1, True), done.stderr
        assert {credentials for _, _, credentials in heard} == {None}


def test_ctrl_c_does_not_lose_a_token_that_was_just_changed(tmp_path: Path) -> None:
    refreshing = threading.Event()
    renewed = {"access_token": "new", "refresh_token": "next", "session_expires_at": "2030-01-01T00:00:00Z"}

    def answer(path: str) -> Answer:
        if not path.endswith("/refresh"):
            return 401, OURS, problem("token_unknown", "over")
        refreshing.set()
        time.sleep(1)
        return 200, OURS, json.dumps(renewed)

    with false_pool(answer) as (port, _):
        desk = Desk(tmp_path, port, tmp_path)
        desk.keep(_ADA, _SESSION)
        started = desk.start("whoami")
        assert refreshing.wait(30)
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=30)
    assert started.returncode == 130
    assert (desk.stored()["access_token"], desk.stored()["refresh_token"]) == ("new", "next")


_ADA = Person(UUID(int=1), "ada@example.com")
_SESSION = OpenSession(UUID(int=2), "access", "refresh")
