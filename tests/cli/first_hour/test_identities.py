"""Who a command acts as: one rule for all commands, and every refusal says who that was and what to type next."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_false_pools import OURS, false_pool, problem
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import PASSWORD, People, Person, people_of
from tests.worlds.pools.pool import Running
from tidemill.core.accounts.keys import write_key
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.operations.demonstration import FOLDER, PEOPLE, key_file

ID = "01a1e457-0baf-7960-a23e-15e98fca8080"
ELSEWHERE = "https://pool.example.com"

ASKING = [
    "whoami",
    "logins",
    "sessions",
    "keys",
    "account roles",
    "account become provider",
    "top --once",
    "nodes list",
    "nodes show x",
    "nodes history x",
    "nodes why x",
    "nodes tokens list",
    "nodes tokens make attic",
    "nodes rename x y",
    "nodes drain x",
    "jobs list",
    f"jobs show {ID}",
    f"jobs why {ID}",
    f"jobs logs {ID}",
    f"jobs result {ID}",
    f"jobs cancel {ID}",
    "artefacts list",
    "artefacts usage",
    f"artefacts show {ID}",
    "models list",
    "admin accounts",
    "admin switches",
    "admin stop placement -r x",
    "admin block ann@example.com -r spam",
    f"ledger approve {ID}",
]
"""Commands that ask a pool as somebody."""

AT_HOME = [
    "config",
    "down",
    "control",
    "up",
    "db shell",
    "db check",
    "db backup",
    "ledger check",
    "ledger archives",
    "audit verify",
    "admin settings",
    "mail",
    "trust reviews",
    "sim export world.json",
]
"""Commands that work on the home or the database of this machine's pool, as the user who runs them."""


@pytest.fixture
def people(shared_pool: Running) -> Iterator[People]:
    with people_of(shared_pool) as found:
        yield found


@pytest.fixture
def desk(shared_pool: Running, tmp_path: Path) -> Desk:
    """Somebody's own machine, which is not the pool's."""
    return Desk(tmp_path / "home", shared_pool.port, tmp_path)


@pytest.fixture
def demonstration(tmp_path: Path) -> Path:
    """The home of a demonstration, as its pool leaves it."""
    home = tmp_path / "demo"
    (home / FOLDER).mkdir(parents=True, mode=0o700)
    for number, name in enumerate(PEOPLE):
        key_file(home, name).write_text(write_key(bytes([number]) * 40))
    (home / "operator.token").write_text("a token of the home")
    return home


@pytest.mark.parametrize("command", ASKING)
def test_every_command_is_the_customer_in_a_demonstration_and_says_so(
    command: str, demonstration: Path, tmp_path: Path
) -> None:
    """The pool is a false one that refuses everything, and notes who asked."""
    refusing = (403, OURS, problem("operator_only", "Only an operator may do this."))
    with false_pool(lambda _: refusing) as (port, asked):
        desk = Desk(demonstration, port, tmp_path)
        done = desk.run(*command.split(), TIDEMILL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    customer = key_file(demonstration, "customer").read_text()
    assert {authorization for _, _, authorization in asked} == {f"Bearer {customer}"}
    assert done.returncode == 1, done.stderr
    assert f"You are customer@demo.example (customer) at http://127.0.0.1:{port}" in done.stderr
    assert "this needs an operator: add `--as operator`." in done.stderr


def test_one_option_anywhere_or_a_variable_names_somebody_else(demonstration: Path, tmp_path: Path) -> None:
    refusing = (403, OURS, problem("operator_only", "no"))
    database = {"TIDEMILL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    with false_pool(lambda _: refusing) as (port, asked):
        desk = Desk(demonstration, port, tmp_path)
        for arguments in (("--as", "ada", "whoami"), ("whoami", "--as", "ada"), ("whoami", "--as=ada")):
            assert "ada@demo.example (provider)" in desk.run(*arguments, **database).stderr
        assert "ada@demo.example" in desk.run("whoami", TIDEMILL_AS="ada", **database).stderr
        assert "ben@demo.example" in desk.run("whoami", "--as", "ben", TIDEMILL_AS="ada", **database).stderr
        assert {authorization for _, _, authorization in asked[:4]} == {
            f"Bearer {key_file(demonstration, 'ada').read_text()}"
        }
        before = len(asked)
        unknown = desk.run("whoami", "--as", "eve", **database)
        assert "There is no profile 'eve': there are operator, customer, ada" in unknown.stderr
        both = desk.run("whoami", "--as", "ada", TIDEMILL_API_KEY="tm_" + "a" * 64, **database)
        assert "both say who you are" in both.stderr
        elsewhere = desk.run("whoami", "--as", "ada", TIDEMILL_URL=ELSEWHERE, **database)
        assert f"TIDEMILL_URL names {ELSEWHERE}" in elsewhere.stderr
        assert len(asked) == before, "what contradicts itself asks nobody"


def test_the_people_of_a_demonstration_are_profiles_and_stay_in_its_home(demonstration: Path, tmp_path: Path) -> None:
    desk = Desk(demonstration, 1, tmp_path)
    listed = desk.json("profiles", TIDEMILL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    found = {one["name"]: (one["address"], one["roles"], one["how"]) for one in listed}
    assert found.pop("home") == (None, ["operator"], "token of the home")
    assert found == {name: (f"{name}@demo.example", [role.value], "demonstration") for name, role in PEOPLE.items()}
    assert [one["name"] for one in listed if one["current"]] == ["customer"]
    assert not desk.files()


def test_an_operator_stops_and_starts_in_their_own_name(people: People, desk: Desk) -> None:
    olga = people.person(Role.OPERATOR, second_factor=True)
    try:
        desk.log_in(olga)
        stopped = desk.json("admin", "stop", "payouts", "-r", "moving racks")
        assert (stopped["changed_by"], stopped["stopped"]) == (olga.address, True)
        shown = {one["name"]: one["changed_by"] for one in desk.json("admin", "switches")}
        assert shown["payouts"] == olga.address
    finally:
        started = desk.run("admin", "start", "payouts", "-r", "it is over")
    assert f"recorded as done by {olga.address}" in started.stderr


@pytest.mark.parametrize("command", AT_HOME)
def test_what_works_in_the_home_says_so_instead_of_ignoring_whom_one_names(command: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home", 1, tmp_path)
    elsewhere = desk.run(*command.split(), TIDEMILL_URL=ELSEWHERE)
    assert elsewhere.returncode == 1, elsewhere.stderr
    assert f"TIDEMILL_URL names {ELSEWHERE}, but this works only on the pool in {desk.home}" in elsewhere.stderr
    somebody = desk.run(*command.split(), "--as", "ada")
    assert (somebody.returncode, "leave out `--as ada`" in somebody.stderr) == (1, True), somebody.stderr
    assert not desk.home.exists()


def test_a_key_acts_in_the_only_role_of_its_account(people: People, desk: Desk) -> None:
    create = ("keys", "create", "ci", "--scope", "account:read")
    log_in(desk, people.person(Role.PROVIDER))
    assert desk.run(*create).returncode == 0
    assert [key["role"] for key in desk.json("keys")] == ["provider"]
    log_in(desk, people.person(Role.CUSTOMER, Role.PROVIDER))
    refused = desk.run(*create)
    assert (refused.returncode, "You are customer and provider" in refused.stderr) == (1, True), refused.stderr
    assert desk.run(*create, "--role", "customer").returncode == 0


def test_nobody_takes_the_place_of_a_profile_that_ended(people: People, desk: Desk) -> None:
    ann, bob = people.person(), people.person(Role.PROVIDER)
    log_in(desk, ann, "--name", "ann")
    log_in(desk, bob, "--name", "bob")
    assert "Nobody is current now" in desk.run("logout").stderr
    for settings in ({}, {"TIDEMILL_URL": f"http://127.0.0.1:{desk.port}"}):
        refused = desk.run("whoami", **settings)
        assert (refused.returncode, "The profile bob at" in refused.stderr) == (1, True), refused.stderr
        assert "`tidemill profiles use NAME` or `--as NAME` (ann)" in refused.stderr
    assert desk.json("whoami", "--as", "ann")["profile"] == "ann"
    assert desk.run("profiles", "use", "ann").returncode == 0
    assert desk.json("whoami")["profile"] == "ann"


def test_a_login_is_kept_while_another_pool_answers_at_its_address(people: People, desk: Desk) -> None:
    log_in(desk, people.person(), "--name", "ann")
    kept = desk.file
    before = kept.read_text()
    unknown = problem(SessionRefusal.TOKEN_UNKNOWN.code, "not known")
    with false_pool(lambda _: (401, OURS, unknown)) as (port, _):
        kept.write_text(before.replace(str(desk.port), str(port)))
        done = desk.run("whoami", "--as", "ann")
    assert "another pool answers at this address" in done.stderr
    kept.write_text(kept.read_text().replace(str(port), str(desk.port)))
    assert desk.json("whoami", "--as", "ann")["profile"] == "ann"


def test_several_people_at_one_pool_have_profiles_of_their_own(people: People, desk: Desk) -> None:
    ann, bob = people.person(), people.person(Role.PROVIDER)
    log_in(desk, ann, "--name", "ann")
    log_in(desk, bob)
    bobs = bob.address.partition("@")[0]
    listed = {one["name"]: one for one in desk.json("profiles")}
    assert {name: one["roles"] for name, one in listed.items()} == {"ann": ["customer"], bobs: ["provider"]}
    assert [one["name"] for one in listed.values() if one["current"]] == [bobs], "the last login"
    assert desk.json("whoami")["account"]["address"] == bob.address
    assert desk.json("whoami", "--as", "ann")["account"]["address"] == ann.address
    assert desk.run("profiles", "use", "ann").returncode == 0
    assert desk.json("whoami")["profile"] == "ann"
    assert {stat.S_IMODE(file.stat().st_mode) for file in desk.config.rglob("credentials/*")} == {0o600}
    taken = desk.run("login", "--email", bob.address, "--name", "ann", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (taken.returncode, "choose another name" in taken.stderr) == (1, True)
    assert desk.run("profiles", "remove", "ann").returncode == 0
    assert [one["name"] for one in desk.json("profiles")] == [bobs]
    assert "The profile ann at" in desk.run("whoami").stderr
    assert desk.run("profiles", "use", bobs).returncode == 0
    assert desk.json("whoami")["profile"] == bobs


def test_a_login_from_before_there_were_names_is_a_profile(people: People, desk: Desk) -> None:
    ann = people.person()
    desk.keep(ann, people.session(ann))
    stored = desk.stored()
    desk.file.write_text(json.dumps({name: text for name, text in stored.items() if name not in ("name", "roles")}))
    name = ann.address.partition("@")[0]
    assert desk.json("whoami", "--as", name)["account"]["address"] == ann.address
    assert [one["name"] for one in desk.json("profiles")] == [name]
    desk.log_in(ann)
    assert len(desk.files()) == 1, "it is the same profile"


def test_a_role_is_taken_on_by_oneself_and_holds_at_once(people: People, desk: Desk) -> None:
    ann = people.person()
    desk.keep(ann, people.session(ann))
    refused = desk.run("nodes", "tokens", "make", "attic")
    assert (refused.returncode, "tidemill account become provider" in refused.stderr) == (1, True), refused.stderr
    assert f"You are {ann.address} (customer) at {desk.url}" in refused.stderr
    assert "can take it on" in desk.run("account", "roles").stdout
    assert desk.json("account", "become", "provider")["roles"] == ["customer", "provider"]
    assert desk.json("account", "become", "provider")["roles"] == ["customer", "provider"], "twice is once"
    assert desk.run("nodes", "tokens", "make", "attic").returncode == 0, "the session in hand has it"
    [changed] = people.rows(
        f"SELECT count(*) FROM event WHERE kind = 'account.roles_changed' AND subject = 'account:{ann.id}'"
    )
    assert changed[0] == 1
    assert "given by an operator" in desk.run("account", "become", "operator").stderr


def test_no_key_takes_on_a_role(people: People, desk: Desk) -> None:
    ann = people.person()
    key = people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ).secret
    by_key = desk.run("account", "become", "provider", TIDEMILL_API_KEY=key, TIDEMILL_URL=desk.url)
    assert (by_key.returncode, "unset TIDEMILL_API_KEY" in by_key.stderr) == (1, True), by_key.stderr


def log_in(desk: Desk, person: Person, *arguments: str) -> None:
    done = desk.run("login", "--email", person.address, "--password-stdin", *arguments, stdin=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
