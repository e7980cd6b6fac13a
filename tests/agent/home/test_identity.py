"""The agent's home and identity: private, whole at every moment, and never used by two agents at once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from tests.tidy.source import ROOT
from tidemill.agent.home.home import Home, home_of, prepare, running_pid, take_lock
from tidemill.agent.home.identity import (
    Membership,
    checked_urls,
    forget_membership,
    make_membership,
    new_membership,
    read_membership,
    update_membership,
)
from tidemill.core.faults import AgentFault

SEED = bytes(range(32))
FINGERPRINT = "ab" * 32
URLS = ("https://pool.example.com", "https://other.example.com:8420")
NODE = UUID(int=7)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "agent")
    prepare(home)
    return home


def test_an_identity_is_read_as_it_was_made_and_learns_its_node(home: Home) -> None:
    made = new_membership(SEED, FINGERPRINT, [*URLS, URLS[0] + "/"])
    assert made.urls == URLS
    make_membership(home.membership, made)
    assert read_membership(home.membership) == made
    joined = update_membership(home.membership, made, node_id=NODE)
    assert read_membership(home.membership) == joined == Membership(made.identity, FINGERPRINT, URLS, NODE)
    moved = update_membership(home.membership, joined, urls=["http://127.0.0.1:8420"])
    assert read_membership(home.membership) == moved
    assert (moved.node_id, moved.urls) == (NODE, ("http://127.0.0.1:8420",))
    forget_membership(home.membership)
    forget_membership(home.membership)
    assert read_membership(home.membership) is None
    assert list(home.path.iterdir()) == []


def test_the_file_is_private_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        made = new_membership(SEED, FINGERPRINT, URLS)
        make_membership(home.membership, made)
        assert home.membership.stat().st_mode & 0o777 == 0o600
        update_membership(home.membership, made, node_id=NODE)
        assert home.membership.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_an_identity_is_never_overwritten_by_another(home: Home) -> None:
    first = new_membership(SEED, FINGERPRINT, URLS)
    make_membership(home.membership, first)
    with pytest.raises(AgentFault, match="agent leave"):
        make_membership(home.membership, new_membership(bytes(32), FINGERPRINT, URLS))
    assert read_membership(home.membership) == first
    assert [file.name for file in home.path.iterdir()] == ["membership.json"], "no draft is left behind"


def test_the_key_is_in_no_text_that_we_make(home: Home) -> None:
    made = new_membership(SEED, FINGERPRINT, URLS)
    make_membership(home.membership, made)
    kept = home.membership.read_text()
    seed = json.loads(kept)["seed"]
    home.membership.write_text(kept.replace(FINGERPRINT, "wrong"))
    with pytest.raises(AgentFault) as caught:
        read_membership(home.membership)
    for text in (repr(made), str(made), str(caught.value), repr(caught.value)):
        assert seed not in text
        assert SEED.hex() not in text
        assert repr(SEED)[2:-1] not in text
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '"text"',
        "[" * 10_000,
        '{"seed": 5, "pool_fingerprint": "", "urls": [], "node_id": null}',
        "\x00\xff",
    ],
)
def test_a_damaged_identity_is_told_and_left_alone(home: Home, text: str) -> None:
    home.membership.write_text(text)
    home.membership.chmod(0o600)
    with pytest.raises(AgentFault, match="damaged"):
        read_membership(home.membership)
    assert home.membership.read_text() == text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", "AAAA"),
        ("seed", "é"),
        ("seed", None),
        ("pool_fingerprint", "AB" * 32),
        ("pool_fingerprint", 7),
        ("urls", []),
        ("urls", "https://pool.example.com"),
        ("urls", [7]),
        ("urls", [[]]),
        ("urls", ["http://pool.example.com"]),
        ("urls", ["https://pool.example.com"] * 9),
        ("node_id", "7"),
        ("node_id", 7),
    ],
)
def test_an_identity_with_a_field_that_cannot_be_is_refused(home: Home, field: str, value: object) -> None:
    make_membership(home.membership, new_membership(SEED, FINGERPRINT, URLS))
    kept = json.loads(home.membership.read_text()) | {field: value}
    home.membership.write_text(json.dumps(kept))
    with pytest.raises(AgentFault, match="damaged"):
        read_membership(home.membership)


def test_an_identity_that_others_may_read_or_that_is_a_link_is_refused(home: Home) -> None:
    make_membership(home.membership, new_membership(SEED, FINGERPRINT, URLS))
    home.membership.chmod(0o640)
    with pytest.raises(AgentFault, match="chmod 600"):
        read_membership(home.membership)
    home.membership.chmod(0o600)
    home.membership.rename(home.path / "elsewhere")
    home.membership.symlink_to(home.path / "elsewhere")
    with pytest.raises(AgentFault, match="cannot be read"):
        read_membership(home.membership)


@pytest.mark.parametrize(
    "url",
    [
        "http://pool.example.com",
        "ws://pool.example.com",
        "https://",
        "pool.example.com",
        "",
        "https://user@pool.example.com",
        "https://:secret@pool.example.com",
        "https://pool.example.com/?token=1",
        "https://pool.example.com/#x",
        "https://pool.example.com:99999",
        "https://pool .example.com",
        "https://pool.example.com\n",
        "https://pööl.example.com",
        "https://" + "x" * 300,
        "file:///etc/passwd",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1",
        "https://[::1",
    ],
)
def test_an_address_that_is_none_of_a_pool_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(AgentFault) as caught:
        checked_urls(["https://good.example.com", url])
    assert "Address 2" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8420", "http://localhost:8420", "http://[::1]:8420", URLS[1]])
def test_an_address_of_a_pool_is_let_through(url: str) -> None:
    assert checked_urls([url]) == (url,)


def test_a_pool_has_between_one_and_eight_addresses() -> None:
    for urls in ([], [f"https://{n}.example.com" for n in range(9)]):
        with pytest.raises(AgentFault, match="one to 8"):
            checked_urls(urls)


@pytest.mark.parametrize("fingerprint", ["", "ab", "AB" * 32, "ab" * 32 + "\n", "zz" * 32])
def test_a_fingerprint_that_is_none_is_refused(fingerprint: str) -> None:
    with pytest.raises(AgentFault, match="join token"):
        new_membership(SEED, fingerprint, URLS)


def test_the_home_is_where_services_or_users_keep_their_state(tmp_path: Path) -> None:
    assert home_of(tmp_path).path == tmp_path
    usual = home_of(None).path
    assert usual.name == "tidemill-agent"
    assert (usual == Path("/var/lib/tidemill-agent")) == (os.geteuid() == 0)


def test_a_home_that_others_may_use_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    prepare(home)
    prepare(home)
    assert home.path.stat().st_mode & 0o777 == 0o700
    home.path.chmod(0o750)
    with pytest.raises(AgentFault, match="chmod 700"):
        prepare(home)
    (tmp_path / "file").touch()
    with pytest.raises(AgentFault, match="cannot be made"):
        prepare(Home(tmp_path / "file"))


@pytest.mark.needs("root")
def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "agent")
    prepare(home)
    os.chown(home.path, 65534, 65534)
    with pytest.raises(AgentFault, match="another user"):
        prepare(home)


async def test_two_agents_never_run_on_one_identity(home: Home) -> None:
    assert running_pid(home) is None
    lock = await take_lock(home)
    assert running_pid(home) == os.getpid()
    with pytest.raises(AgentFault, match=f"process {os.getpid()}"):
        await take_lock(home)
    lock.release()
    assert running_pid(home) is None
    (await take_lock(home)).release()


async def test_of_many_that_start_at_once_one_gets_the_home(home: Home) -> None:
    tries = await asyncio.gather(*(take_lock(home) for _ in range(8)), return_exceptions=True)
    assert sum(not isinstance(one, AgentFault) for one in tries) == 1


def test_an_agent_that_was_killed_leaves_no_lock_behind(home: Home) -> None:
    script = (
        "import asyncio, sys, time; from pathlib import Path; from tidemill.agent.home.home import Home, take_lock\n"
        "lock = asyncio.run(take_lock(Home(Path(sys.argv[1])))); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, home.path], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        assert running_pid(home) == process.pid
        with pytest.raises(AgentFault, match=f"process {process.pid}"):
            asyncio.run(take_lock(home))
        process.send_signal(signal.SIGKILL)
    assert running_pid(home) is None
    asyncio.run(take_lock(home)).release()
