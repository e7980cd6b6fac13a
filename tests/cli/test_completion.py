"""Completion in real shells: commands and options without a network, ids from a running pool, and silence else."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import TIDEMILL, Running
from tidemill.cli.main import root_command
from tidemill.cli.terminal.completion_words import FILES, suggestions
from tidemill.core.accounts.keys import write_key

LIVE = {"JOB": [("98fca808", "matmul completed"), ("last", "the newest job")], "NODE": [("0badf00d", "attic")]}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jo", ["jobs"]),
        ("jobs sh", ["show"]),
        ("nodes tokens ", ["list", "make", "revoke"]),
        ("jobs list --st", ["--state"]),
        ("jobs list --state co", ["completed"]),
        ("jobs list --limit 5 --state co", ["completed"]),
        ("jobs show ", ["98fca808", "last"]),
        ("jobs logs --follow 98", ["98fca808"]),
        ("jobs show last ", []),
        ("nodes show ", ["0badf00d"]),
        ("jobs submit ", [FILES]),
        ("jobs result last --out ", [FILES]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("jobs result last -", ["--out", "--json", "--help"]),
        ("nonsense ", []),
        ("jobs nonsense ", []),
        ("--debug jobs sh", ["show"]),
    ],
)
def test_the_words_before_it_say_what_a_word_may_become(line: str, words: list[str]) -> None:
    found = suggestions(root_command(), line.split(" "), lambda place: LIVE.get(place, ()))
    assert [one.word for one in found] == words


def test_hidden_commands_are_not_offered() -> None:
    assert "complete" not in [one.word for one in suggestions(root_command(), ["com"], lambda _: ())]


BASH = """
source <("$TIDEMILL" completion bash)
COMP_WORDS=("$TIDEMILL" "$@"); COMP_CWORD=$#; COMP_TYPE=${ASKED:-9}
_tidemill; printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
autoload -U compinit; compinit -D
source <("$TIDEMILL" completion zsh)
_describe() { print -l -- "${found[@]}" }
_files() { print -- files }
words=("$TIDEMILL" "$@"); CURRENT=$(( $# + 1 ))
_tidemill
"""
FISH = """
"$TIDEMILL" completion fish | source
complete -C "tidemill $argv"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [(("jo",), ["jobs"]), (("jobs", "list", "--st"), ["--state"]), (("nodes", "tokens", "m"), ["make"])],
)
def test_bash_completes_commands_and_options(words: Sequence[str], expected: list[str], tmp_path: Path) -> None:
    assert in_shell("bash", "--norc", "-c", BASH, "bash", *words, home=tmp_path) == expected


def test_bash_shows_what_the_words_are_when_it_lists_them(tmp_path: Path) -> None:
    listed = in_shell("bash", "--norc", "-c", BASH, "bash", "log", home=tmp_path, ASKED="63")
    assert [line.split()[0] for line in listed] == ["login", "logout", "logins"]
    assert listed[0] == "login  (Log in to a pool.)"


@pytest.mark.needs("zsh")
def test_zsh_completes_with_descriptions(tmp_path: Path) -> None:
    assert in_shell("zsh", "-f", "-c", ZSH, "zsh", "logi", home=tmp_path) == [
        "login:Log in to a pool.",
        "logins:List the tries to log in to your account, newest first.",
    ]
    assert in_shell("zsh", "-f", "-c", ZSH, "zsh", "jobs", "submit", "", home=tmp_path) == ["files"]


@pytest.mark.needs("fish")
def test_fish_completes_with_descriptions(tmp_path: Path) -> None:
    shown = in_shell("fish", "--no-config", "-c", FISH, "logi", home=tmp_path)
    assert sorted(shown) == [
        "login\tLog in to a pool.",
        "logins\tList the tries to log in to your account, newest first.",
    ]


@pytest.fixture(scope="module")
def people(shared_pool: Running) -> Iterator[People]:
    with people_of(shared_pool) as people:
        yield people


def test_ids_of_the_pool_are_completed_with_their_names(shared_pool: Running, people: People, tmp_path: Path) -> None:
    desk, person = Desk(tmp_path / "home", shared_pool.port, tmp_path), people.person()
    desk.keep(person, people.session(person))
    key = desk.json("keys", "create", "ci", "--scope", "account:read")
    offered = desk.run("complete", "--", "keys", "revoke", "")
    assert offered.stdout == f"{key['about']['prefix']}\tci\n"


def test_a_pool_that_does_not_answer_is_waited_for_less_than_a_second_and_in_silence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        key = {"TIDEMILL_API_KEY": write_key(bytes(40)), "TIDEMILL_URL": f"http://127.0.0.1:{port}"}
        desk = Desk(tmp_path / "home", port, tmp_path)
        idle = time.monotonic()
        desk.run("complete", "--", "jobs", "sh", **key)
        began = time.monotonic()
        done = desk.run("complete", "--", "jobs", "show", "", **key)
        assert time.monotonic() - began < (began - idle) + 1.5, "the deadline is 0.8 s, and a busy machine is slow"
        assert (done.stdout, done.stderr) == ("", "")


def in_shell(*command: str, home: Path, **settings: str) -> list[str]:
    """The lines that a shell shows."""
    environment: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL")},
        **{"TIDEMILL": str(TIDEMILL), "PATH": f"{TIDEMILL.parent}:{os.environ['PATH']}", "HOME": str(home)},
        **settings,
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
