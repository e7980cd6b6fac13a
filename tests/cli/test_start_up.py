"""What a command loads before it begins: the time of a call is mostly that. Modules are counted, not seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.pools.pool import clean_environment
from tidemill.core.accounts.keys import write_key

NEVER = {
    *("aiosmtplib", "argon2", "asyncpg", "fastapi", "msgspec", "numpy", "psutil", "pydantic", "rich"),
    *("starlette", "structlog", "uvicorn", "uvloop", "websockets"),
    *("tidemill.agent", "tidemill.control", "tidemill.link", "tidemill.sim", "tidemill.store"),
}
"""What no call over HTTP needs."""

NOT_FOR_HELP = NEVER | {
    *("asyncio", "cryptography", "email", "http", "httpx2", "platformdirs", "ssl", "yaml"),
    *("tidemill.cli.client", "tidemill.core.settings"),
}

SCRIPT = """
import json, sys
from tidemill.cli.main import run
print(json.dumps([run(sys.argv[1:]), sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "unwanted"),
    [
        (["--help"], 0, NOT_FOR_HELP),
        (["--version"], 0, NOT_FOR_HELP),
        ([], 0, NOT_FOR_HELP),
        (["whoami"], 4, NEVER),
        (["jobs", "list", "--limit", "5"], 4, NEVER),
        (["nodes", "show", "attic"], 4, NEVER),
        (["keys"], 4, NEVER),
    ],
)
def test_a_command_loads_only_what_it_needs(
    arguments: list[str], code: int, unwanted: set[str], tmp_path: Path
) -> None:
    """The calls go to a port where nobody listens, with a key: all of them is loaded but the answer."""
    own = {"TIDEMILL_API_KEY": write_key(bytes(40)), "TIDEMILL_URL": "http://127.0.0.1:9", "HOME": str(tmp_path)}
    environment = clean_environment(tmp_path, 9, own)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    ended, loaded = json.loads(done.stderr.splitlines()[-1])
    assert ended == code, done.stderr
    assert unwanted.isdisjoint(loaded), sorted(unwanted.intersection(loaded))
