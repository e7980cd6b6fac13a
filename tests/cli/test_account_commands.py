"""Accounts from the command line, against a real pool: at a terminal, in scripts, at once, and among thieves."""

import json
import re
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyotp
import pytest
import trustme

from tests.cli.test_false_pools import OURS, false_pool
from tests.worlds.places import reachable_directory
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, PASSWORD, OpenSession, People, Person, bearer, code_of, log_in, people_of
from tests.worlds.pools.pool import Pool, Running, pool_in
from tests.worlds.pools.terminal import Terminal
from tidemill.core.accounts.roles import Role
from tidemill.core.notices.mail import LetterKind

FOUNDER = "founder@example.com"
PASSWORD_PROMPT = "Password"


@dataclass
class World:
    pool: Pool
    running: Running
    people: People
    founding: Terminal
    founder: Desk


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A pool that somebody has set up at a terminal."""
    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        running = pool.up()
        running.until_ready()
        founder = Desk(home, running.port, tmp_path_factory.mktemp("founder"))
        screen = founder.at_terminal("setup")
        screen.answer("Set-up link", _set_up_link(running))
        screen.answer("E-mail address", FOUNDER)
        screen.answer("New password", PASSWORD)
        screen.answer("The same again", "something else")
        screen.answer("New password", PASSWORD)
        screen.answer("The same again", PASSWORD)
        screen.answer("First code", "000000")
        found = re.search(r"secret: ([A-Z2-7]+)", screen.shown)
        assert found, screen.shown
        screen.answer("First code", pyotp.TOTP(found[1]).now())
        assert screen.end() == 0, screen.shown
        with people_of(running) as people:
            yield World(pool, running, people, screen, founder)


@pytest.fixture
def desk(world: World, tmp_path: Path) -> Desk:
    return Desk(world.running.home, world.running.port, tmp_path)


@pytest.fixture
def person(world: World, desk: Desk) -> Person:
    """A customer who is logged in at the desk."""
    person = world.people.person()
    desk.keep(person, world.people.session(person))
    return person


def test_a_pool_is_set_up_at_a_terminal_with_a_second_factor(world: World) -> None:
    shown = world.founding.shown
    assert "not the same" in shown
    assert "code is wrong" in shown
    assert "▀" in shown, "a QR code"
    assert len(re.findall(r"^[a-z2-7]{4}(?:-[a-z2-7]{4}){3}$", shown, re.MULTILINE)) == 10
    assert PASSWORD not in shown, "what is typed as a password does not appear"
    about = world.founder.json("whoami")
    assert (about["account"]["address"], about["acting_as"]) == (FOUNDER, ["operator"])
    assert stat.S_IMODE(world.founder.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(world.founder.file.parent.stat().st_mode) == 0o700
    assert PASSWORD not in world.founder.file.read_text()


def test_a_link_is_good_for_one_set_up(world: World, desk: Desk) -> None:
    screen = desk.at_terminal("setup", _set_up_link(world.running))
    screen.answer("E-mail address", "thief@example.com")
    screen.answer("New password", PASSWORD)
    screen.answer("The same again", PASSWORD)
    assert screen.end() == 1
    assert "set up already" in screen.shown
    assert desk.files() == []


def test_a_newcomer_needs_no_browser(world: World, desk: Desk) -> None:
    address = "newcomer@example.com"
    screen = desk.at_terminal("register", "--role", "provider", "--role", "customer")
    screen.answer("E-mail address", address)
    screen.answer("New password", PASSWORD)
    screen.answer("The same again", PASSWORD)
    assert screen.end() == 0, screen.shown
    code = str(world.people.letter(address, LetterKind.CONFIRM_ADDRESS).parameters["code"])
    screen = desk.at_terminal("confirm")
    screen.answer("Code in the letter", code)
    screen.answer("E-mail address", address)
    screen.answer("password you registered with", PASSWORD)
    assert screen.end() == 0, screen.shown
    screen = desk.at_terminal("login", "--email", address)
    screen.answer(PASSWORD_PROMPT, PASSWORD)
    assert screen.end() == 0, screen.shown
    assert desk.json("whoami")["account"]["second_factor_on"] is False

    assert desk.run("forgot", "--email", address).returncode == 0
    link = str(world.people.letter(address, LetterKind.RESET_PASSWORD).parameters["link"])
    screen = desk.at_terminal("reset", "--code", link)
    screen.answer("New password", "another horse entirely")
    screen.answer("The same again", "another horse entirely")
    assert screen.end() == 0, screen.shown
    over = desk.run("whoami")
    assert (over.returncode, "tidemill login" in over.stderr) == (1, True), over.stderr
    assert desk.files() == [], "tokens of a session that is over are removed"


def test_nobody_registers_as_an_operator(desk: Desk) -> None:
    done = desk.run("register", "--role", "operator", "--email", "thief@example.com")
    assert (done.returncode, "given by an operator" in done.stderr) == (1, True)


def test_a_script_logs_in_without_a_terminal(world: World, desk: Desk) -> None:
    operator = world.people.person(Role.OPERATOR, second_factor=True)
    login = ("login", "--email", operator.address, "--password-stdin")
    without = desk.run(*login, stdin=f"{PASSWORD}\n")
    assert (without.returncode, "--code" in without.stderr) == (1, True), without.stderr
    done = desk.run(*login, "--code", operator.code(), "--json", stdin=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    stored, told = desk.stored(), json.loads(done.stdout)
    assert told["session_id"] == stored["session_id"]
    for secret in (stored["access_token"], stored["refresh_token"], PASSWORD):
        assert secret not in done.stdout + done.stderr
    assert [one["result"] for one in desk.json("logins")] == ["ok", "code_missing"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["login"], "", "--email"),
        (["login", "--email", "a@example.com"], f"{PASSWORD}\n", "--password-stdin"),
        (["login", "--email", "a@example.com", "--password-stdin"], "", "first line"),
        (["login", "--email", "a@example.com", "--password-stdin"], "wrong\n", "tidemill forgot"),
        (["login", "--email", "no address", "--password-stdin"], "wrong\n", "address"),
        (["login", "http://192.0.2.1", "--email", "a@example.com", "--password-stdin"], "x\n", "HTTPS only"),
        (["register", "--email", "a@example.com"], "", "terminal"),
        (["setup", "http://127.0.0.1/setup"], "", "what follows the #"),
        (["setup", "http://192.0.2.1/setup#token"], "", "HTTPS only"),
        (["logout"], "", "not logged in"),
        (["keys"], "", "not logged in"),
        (["keys", "create", "x", "--scope", "account:read"], "", "not logged in"),
        (["sessions", "end-others"], "", "not logged in"),
        (["second-factor", "on"], "", "not logged in"),
    ],
)
def test_what_cannot_be_asked_or_done_is_told_in_a_sentence(
    desk: Desk, arguments: list[str], stdin: str, words: str
) -> None:
    done = desk.run(*arguments, stdin=stdin)
    assert (done.returncode, words in done.stderr, done.stdout) == (1, True, ""), done.stderr


def test_without_a_login_the_token_of_the_home_is_who_they_are(desk: Desk) -> None:
    about = desk.json("whoami")
    assert (about["profile"], about["how"], about["acting_as"]) == ("home", "token of the home", ["operator"])
    assert "nobody's account" in desk.run("whoami").stdout


def test_a_token_whose_time_is_over_is_changed_without_a_word(world: World, desk: Desk) -> None:
    before = sit_down_late(world, desk)
    done = desk.run("whoami")
    assert (done.returncode, done.stderr) == (0, "")
    after = desk.stored()
    assert after["session_id"] == str(before.id)
    assert after["access_token"] != before.access_token
    assert after["refresh_token"] != before.refresh_token
    assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600


def test_commands_at_once_never_use_a_refresh_token_twice(world: World, desk: Desk) -> None:
    session = sit_down_late(world, desk)
    started = [desk.start("whoami") for _ in range(5)]
    ended = [(one.communicate(timeout=60)[1], one.returncode) for one in started]
    assert ended == [("", 0)] * 5
    assert [one["id"] for one in desk.json("sessions")] == [str(session.id)]


def test_a_stolen_refresh_token_that_was_used_ends_the_session_for_both(world: World, desk: Desk) -> None:
    session = sit_down_late(world, desk)
    stolen = world.running.post("/api/v1/auth/refresh", json={"refresh_token": session.refresh_token})
    assert stolen.status_code == 200
    done = desk.run("whoami")
    assert (done.returncode, "session is over" in done.stderr) == (1, True), done.stderr
    assert desk.files() == []
    thief = world.running.get("/api/v1/account", headers=bearer(stolen.json()["access_token"]))
    assert code_of(thief) == "session_over"


def test_what_needs_a_fresh_password_asks_for_it_and_goes_on(world: World, desk: Desk) -> None:
    person = world.people.person(second_factor=True)
    desk.keep(person, world.people.session(person, age_s=3600))
    create = ("keys", "create", "render farm", "--scope", "account:read")
    unasked = desk.run(*create)
    assert (unasked.returncode, "tidemill login" in unasked.stderr) == (1, True), unasked.stderr
    wrong = desk.at_terminal(*create)
    wrong.answer("your password again", "wrong")
    assert wrong.end() == 1
    screen = desk.at_terminal(*create)
    screen.answer("your password again", PASSWORD)
    screen.answer("Code of your authenticator", person.code())
    assert screen.end() == 0, screen.shown
    assert PASSWORD not in screen.shown
    assert re.search(r"^tm_[a-z2-7]{64}$", screen.shown, re.MULTILINE)
    assert [key["name"] for key in desk.json("keys")] == ["render farm"]


@pytest.mark.usefixtures("person")
def test_keys_are_made_used_rotated_and_revoked(desk: Desk, tmp_path: Path) -> None:
    options = ("--network", "127.0.0.1", "--expires", "90d", "--spending-cap", "250")
    made = desk.run("keys", "create", "farm", "--scope", "account:read", "--scope", "events:read", *options)
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert secret not in made.stderr
    (key,) = desk.json("keys")
    assert secret.startswith(key["prefix"])
    assert (key["networks"], key["spending_cap"]) == (["127.0.0.1/32"], "250")

    stranger = Desk(desk.home, desk.port, tmp_path / "elsewhere")
    about = stranger.json("whoami", TIDEMILL_API_KEY=secret, TIDEMILL_URL=desk.url)
    assert (about["acting_as"], about["session_expires_at"]) == (["customer"], None)
    assert "API key" in stranger.run("whoami", TIDEMILL_API_KEY=secret).stdout
    beyond = stranger.run("sessions", "end-others", TIDEMILL_API_KEY=secret)
    assert (beyond.returncode, "not logged in" in beyond.stderr) == (1, True), beyond.stderr

    rotated = desk.json("keys", "rotate", "farm")
    assert rotated["about"]["name"] == "farm"
    ambiguous = desk.run("keys", "revoke", "farm")
    assert (ambiguous.returncode, key["prefix"] in ambiguous.stderr) == (1, True)
    assert desk.run("keys", "rotate", key["prefix"]).returncode == 1, "it was rotated"
    assert desk.run("keys", "revoke", key["prefix"]).returncode == 0
    assert desk.run("keys", "revoke", rotated["key"]).returncode == 0, "a key that somebody found"
    assert desk.json("keys") == []
    gone = stranger.run("whoami", TIDEMILL_API_KEY=secret)
    assert (gone.returncode, secret in gone.stderr) == (1, False)


@pytest.mark.usefixtures("person")
def test_a_key_that_may_not_be_is_refused(desk: Desk) -> None:
    refused = {
        "--expires soon": "90d",
        "--expires 2001-01-01": "future",
        "--expires 9999999999d": "90d",
        "--role operator": "role",
        "--scope pool:write": "operators' keys",
        "--network everywhere": "203.0.113.0/24",
        "--spending-cap much": "amount",
    }
    for options, words in refused.items():
        done = desk.run("keys", "create", "farm", "--scope", "account:read", *options.split())
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    assert desk.json("keys") == []


@pytest.mark.usefixtures("person")
def test_logging_out_ends_the_session_and_removes_the_tokens(world: World, desk: Desk) -> None:
    stored = desk.stored()
    assert desk.run("logout").returncode == 0
    assert desk.files() == []
    for token in (stored["access_token"], stored["refresh_token"]):
        assert token not in "".join(file.read_text() for file in desk.config.rglob("*.*") if file.is_file())
    asked = world.running.get("/api/v1/account", headers=bearer(stored["access_token"]))
    refreshed = world.running.post("/api/v1/auth/refresh", json={"refresh_token": stored["refresh_token"]})
    assert (code_of(asked), code_of(refreshed)) == ("session_over", "session_over")


def test_logging_out_of_a_pool_that_is_gone_still_removes_the_tokens(world: World, desk: Desk) -> None:
    person = world.people.person()
    desk.keep(person, world.people.session(person), "http://127.0.0.1:1")
    done = desk.run("logout", TIDEMILL_URL="http://127.0.0.1:1")
    assert (done.returncode, "tokens are removed" in done.stderr) == (5, True), done.stderr
    assert desk.files() == []


def test_logging_in_again_ends_the_session_before(world: World, desk: Desk) -> None:
    person = world.people.person()
    desk.log_in(person)
    first = desk.stored()["session_id"]
    desk.log_in(person, "--remember")
    assert [one["id"] for one in desk.json("sessions")] == [desk.stored()["session_id"]] != [first]


def test_other_sessions_are_listed_and_ended(world: World, desk: Desk, person: Person) -> None:
    other, third = world.people.session(person), world.people.session(person)
    assert {one["id"] for one in desk.json("sessions") if not one["current"]} == {str(other.id), str(third.id)}
    assert desk.run("sessions", "end", str(other.id)).returncode == 0
    assert desk.run("sessions", "end", str(other.id)).returncode == 1
    assert desk.json("sessions", "end-others") == {"ended": 1}
    assert [one["current"] for one in desk.json("sessions")] == [True]
    assert "127.0.0.1" in desk.run("sessions").stdout


def test_a_second_factor_is_switched_on_and_off_and_codes_are_renewed(desk: Desk, person: Person) -> None:
    screen = desk.at_terminal("second-factor", "on")
    screen.answer("First code", _first_code(screen))
    assert screen.end() == 0, screen.shown
    renewed = desk.json("second-factor", "codes")["recovery_codes"]
    assert len(renewed) == 10
    assert renewed[0] not in screen.shown
    again = desk.at_terminal("login", "--email", person.address)
    again.answer(PASSWORD_PROMPT, PASSWORD)
    again.answer("recovery code", renewed[0])
    assert again.end() == 0, again.shown
    off = desk.at_terminal("second-factor", "off")
    off.answer("recovery code", renewed[1])
    assert off.end() == 0, off.shown
    assert desk.files() == [], "every session has ended"
    desk.log_in(person)
    assert desk.json("whoami")["account"]["second_factor_on"] is False


@pytest.mark.usefixtures("person")
def test_without_a_terminal_the_secret_is_told_and_no_colours(desk: Desk) -> None:
    done = desk.run("second-factor", "on")
    assert (done.returncode, "\x1b" in done.stderr, "secret: " in done.stderr) == (1, False, True)


def test_operators_look_after_accounts(world: World, desk: Desk) -> None:
    operator, person = world.people.person(Role.OPERATOR, second_factor=True), world.people.person(Role.PROVIDER)
    desk.keep(operator, world.people.session(operator))
    assert [one["id"] for one in desk.json("admin", "accounts", "--address", person.address)] == [str(person.id)]
    assert desk.json("admin", "block", person.address, "-r", "spam")["blocked_reason"] == "spam"
    blocked = desk.json("admin", "accounts", "--blocked", "--role", "provider")
    assert [one["address"] for one in blocked] == [person.address]
    assert desk.run("admin", "block", str(person.id), "-r", "again").returncode == 1
    assert desk.json("admin", "unblock", str(person.id), "-r", "a mistake")["blocked_reason"] is None
    given = desk.json("admin", "roles", person.address, "provider", "data_centre", "-r", "an audit of theirs")
    assert sorted(given["roles"]) == ["data_centre", "provider"]
    early = desk.run("admin", "kyc", person.address, "verified", "-r", "papers")
    assert (early.returncode, "verification" in early.stderr) == (1, True), early.stderr
    nobody = desk.run("admin", "block", "nobody@example.com", "-r", "x")
    assert (nobody.returncode, "no such account" in nobody.stderr) == (1, True)


@pytest.mark.usefixtures("person")
def test_who_is_no_operator_is_told_so(world: World, desk: Desk) -> None:
    done = desk.run("admin", "accounts")
    assert (done.returncode, "Only an operator" in done.stderr) == (1, True), done.stderr
    alone = world.people.person(Role.OPERATOR)
    desk.keep(alone, world.people.session(alone))
    done = desk.run("admin", "accounts")
    assert (done.returncode, "tidemill second-factor on" in done.stderr) == (1, True), done.stderr


def test_an_operator_who_lost_everything_gets_back_in_on_the_pools_own_machine(world: World, desk: Desk) -> None:
    lost = world.people.person(Role.OPERATOR, second_factor=True)
    done = desk.run("admin", "remove-second-factor", lost.address, "-r", "lost phone and codes")
    assert done.returncode == 0, done.stderr
    screen = desk.at_terminal("login", "--email", lost.address)
    screen.answer(PASSWORD_PROMPT, PASSWORD)
    assert screen.end() == 0, screen.shown
    token = (world.running.home / "operator.token").read_text().strip()
    assert token not in done.stdout + done.stderr


def test_the_token_of_the_home_goes_to_no_other_address(desk: Desk) -> None:
    with false_pool(lambda _: (200, OURS, "{}")) as (port, heard):
        done = desk.run("admin", "accounts", TIDEMILL_URL=f"http://127.0.0.1:{port}")
        assert (done.returncode, "not logged in" in done.stderr) == (1, True), done.stderr
    assert {credentials for _, _, credentials in heard} == {None}


def test_a_key_that_is_none_is_neither_sent_nor_shown(desk: Desk) -> None:
    for wrong in ("tm_secret\nsecret", "secret \x07", "Geheimnis-ß"):
        done = desk.run("whoami", TIDEMILL_API_KEY=wrong)
        assert (done.returncode, "does not hold an API key" in done.stderr) == (1, True), done.stderr
        assert "secret" not in done.stderr


@pytest.mark.usefixtures("person")
def test_tokens_that_others_could_read_are_not_used(desk: Desk) -> None:
    desk.file.chmod(0o644)
    done = desk.run("whoami")
    assert (done.returncode, "chmod 600" in done.stderr) == (1, True), done.stderr


def test_no_proxy_hears_what_is_said_on_this_machine(world: World, desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        person = world.people.person()
        through = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"), address)
        login = ("login", "--email", person.address, "--password-stdin")
        done = desk.run(*login, stdin=f"{PASSWORD}\n", **through)
        assert done.returncode == 0, done.stderr
        assert _nobody_came(proxy)


def test_too_many_failures_say_how_long_to_wait(world: World, desk: Desk) -> None:
    person = world.people.person()
    for _ in range(5):
        log_in(world.running, replace(person, password="wrong"))
    done = desk.run("login", "--email", person.address, "--password-stdin", stdin=f"{PASSWORD}\n")
    assert done.returncode == 1
    assert re.search(r"Try again in \d{2,} s", done.stderr), done.stderr


def test_a_pool_with_a_certificate_of_its_own_authority_is_trusted_once_it_is_named(world: World, desk: Desk) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    chain, key, root = (desk.config / name for name in ("chain.pem", "key.pem", "root.pem"))
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(root)
    secure = world.pool.control("--tls-certificate", str(chain), "--tls-key", str(key))
    secure.scheme, secure.verify = "https", False
    secure.until_ready()
    person = world.people.person()
    login = ("login", f"https://localhost:{secure.port}", "--email", person.address, "--password-stdin")
    unknown = desk.run(*login, stdin=f"{PASSWORD}\n")
    assert (unknown.returncode, "SSL_CERT_FILE" in unknown.stderr) == (5, True), unknown.stderr
    trusted = {"SSL_CERT_FILE": str(root)}
    done = desk.run(*login, stdin=f"{PASSWORD}\n", **trusted)
    assert done.returncode == 0, done.stderr
    assert desk.json("whoami", **trusted)["pool"] == f"https://localhost:{secure.port}", "the only one logged in to"
    wrong_name = desk.run("login", f"https://127.0.0.1:{secure.port}", *login[2:], stdin=f"{PASSWORD}\n", **trusted)
    assert wrong_name.returncode == 5
    assert secure.end() == 0


def test_logged_in_to_several_pools_one_is_named(world: World, desk: Desk) -> None:
    person = world.people.person()
    session = world.people.session(person)
    for url in ("https://a.example.com", "https://b.example.com"):
        desk.keep(person, session, url)
    done = desk.run("whoami")
    assert (done.returncode, "TIDEMILL_URL" in done.stderr, "b.example.com" in done.stderr) == (1, True, True)


def test_ctrl_c_at_a_question_leaves_in_order(desk: Desk) -> None:
    screen = desk.at_terminal("login", "--email", "a@example.com")
    screen.answer(PASSWORD_PROMPT, "\x03")
    assert screen.end() == 130
    assert "Traceback" not in screen.shown


def sit_down_late(world: World, desk: Desk) -> OpenSession:
    """Somebody is logged in, and the time of their access token is over."""
    person = world.people.person()
    session = world.people.session(person)
    late = replace(session, access_token=world.people.access_token(session.id, person.id, lasting_s=-1))
    desk.keep(person, late)
    return late


def _set_up_link(running: Running) -> str:
    found = re.search(r"http://\S+/setup#[\w-]+", running.said())
    assert found, running.said()
    return found[0]


def _first_code(screen: Terminal) -> str:
    """The code for the secret on the screen, once it is there."""
    while not (found := re.search(r"secret: ([A-Z2-7]+)\n", screen.shown)):
        assert screen.read()
    return pyotp.TOTP(found[1]).now()


def _nobody_came(listener: socket.socket) -> bool:
    listener.settimeout(0.1)
    try:
        listener.accept()
    except TimeoutError:
        return True
    return False
