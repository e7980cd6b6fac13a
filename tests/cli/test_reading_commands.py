"""Commands that only read make nothing: no home, no database, no keys, no files, however little there is to read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer

from tests.worlds.forks import ended
from tests.worlds.pools.pool import clean_environment, free_port
from tidemill.cli.main import app
from tidemill.cli.terminal.output import Exit

_ID = str(UUID(int=7))

READING: Mapping[str, tuple[str, ...]] = {
    "completion": ("bash",),
    "complete": ("jobs", ""),
    "status": (),
    "events": (),
    "config": (),
    "whoami": (),
    "profiles": (),
    "account roles": (),
    "logins": (),
    "top": (),
    "sessions": (),
    "db shell": (),
    "db check": (),
    "ledger accounts": (),
    "ledger show": (_ID,),
    "ledger holds": (),
    "trust reviews": (),
    "ledger check": (),
    "ledger adjustments": (),
    "ledger archives": (),
    "nodes list": (),
    "nodes show": (_ID,),
    "nodes history": (_ID,),
    "nodes why": (_ID,),
    "nodes watch": (),
    "nodes tokens list": (),
    "kinds": (),
    "jobs quote": (_ID,),
    "jobs list": (),
    "jobs show": (_ID,),
    "jobs why": (_ID,),
    "jobs logs": (_ID,),
    "jobs result": (_ID,),
    "artefacts list": (),
    "artefacts usage": (),
    "artefacts show": (_ID,),
    "artefacts get": (_ID,),
    "models list": (),
    "models show": ("all-MiniLM-L6-v2",),
    "audit head": (),
    "audit show": (),
    "audit export": ("--file", "trail.jsonl"),
    "audit verify": (),
    "admin switches": (),
    "admin settings": (),
    "admin metrics-token": (),
    "admin accounts": (),
    "mail": (),
    "mail show": (_ID,),
    "keys": (),
    "agent status": (),
    "agent doctor": (),
    "agent rules show": (),
    "sim export": ("world.json",),
}
"""What only reads, and what it is told."""

_CHANGING = """
up | down | control | setup | register | confirm | forgot | reset | login | logout | sessions end
profiles use | profiles remove | account become
sessions end-others | second-factor on | second-factor off | second-factor codes | db backup | db restore
db mark-restored | ledger post | ledger approve | ledger reject | ledger freeze | ledger unfreeze
ledger archive | nodes rename | nodes rules | nodes drain | nodes pause | nodes resume | nodes suspend
nodes unsuspend | nodes remove | nodes tokens make | nodes tokens revoke | jobs submit | jobs confirm
jobs cancel | jobs extend | run matmul | run embed | run script | run render
run container | artefacts put
artefacts delete | models add | models remove | admin stop | admin start | admin settings approve
admin settings reject | admin block | admin unblock | admin roles | admin kyc | admin remove-second-factor
trust decide | mail retry | mail test | keys create | keys revoke | keys rotate | agent join | agent run | agent drain
agent pause | agent resume | agent leave | agent install | agent uninstall | agent rules set
"""
CHANGING = frozenset(name.strip() for line in _CHANGING.split("\n") for name in line.split("|")) - {""}
"""What changes a pool, an account or this machine."""

ON_GIVEN_FILES = frozenset({"proof verify", "sim run", "sim economy", "sim openb"})
"""What knows no pool: it reads the files it is given, and writes where it is told."""


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    if not inner or (path and command.invoke_without_command):
        yield " ".join(path)
    for name, one in inner.items():
        yield from _commands(one, (*path, name))


def test_every_command_is_known_to_read_or_to_change() -> None:
    assert set(_commands(typer.main.get_command(app))) == READING.keys() | CHANGING | ON_GIVEN_FILES
    assert not READING.keys() & CHANGING


@pytest.mark.parametrize("command", READING)
def test_a_reading_command_makes_nothing_where_there_is_no_pool(command: str, tmp_path: Path) -> None:
    user, place = tmp_path / "user", tmp_path / "place"
    user.mkdir()
    place.mkdir()
    folders = {"HOME": str(user), "TIDEMILL_AGENT_HOME": str(tmp_path / "agent")}
    environment = clean_environment(tmp_path / "home", free_port(), folders)
    environment = {name: value for name, value in environment.items() if not name.startswith("XDG_")}
    done = ended(*command.split(), *_placed(READING[command], place), stdin="", environment=environment, within_s=30)
    assert sorted(tmp_path.rglob("*")) == [place, user], done.stderr
    assert done.returncode not in (Exit.BUG, -1), done.stderr
    assert "Traceback" not in done.stderr


def _placed(arguments: tuple[str, ...], place: Path) -> list[str]:
    """The arguments, with files in a folder of the test."""
    return [str(place / argument) if argument.endswith((".json", ".jsonl")) else argument for argument in arguments]
