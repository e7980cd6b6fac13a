"""How long the command takes: its page of help, and two calls to a running pool, beside a Python that does nothing.

All of them by turns, in one run; medians. Prints one line of JSON:
{"pass_s": …, "help_s": …, "help_ratio": …, "whoami_s": …, "whoami_ratio": …, "jobs_list_s": …, "jobs_list_ratio": …}
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx2
from pools import BenchPool, pool_of_its_own

_PASSWORD = "a long sentence for the bench"
_TIDEMILL = str(Path(sys.executable).with_name("tidemill"))
_COMMANDS: Mapping[str, Sequence[str]] = {
    "pass": (sys.executable, "-c", "pass"),
    "help": (_TIDEMILL, "--help"),
    "whoami": (_TIDEMILL, "whoami"),
    "jobs_list": (_TIDEMILL, "jobs", "list"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    with pool_of_its_own() as pool:
        environment = _logged_in(pool)
        taken: dict[str, list[float]] = {name: [] for name in _COMMANDS}
        for number in range(rounds + 1):
            for name, command in _COMMANDS.items():
                seconds = _run(command, environment)
                if number:  # the first round compiles and fills the caches of the disk
                    taken[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    figures = {f"{name}_s": round(seconds, 4) for name, seconds in medians.items()}
    figures |= {f"{name}_ratio": round(medians[name] / medians["pass"], 2) for name in _COMMANDS if name != "pass"}
    sys.stdout.write(json.dumps(figures) + "\n")


def _logged_in(pool: BenchPool) -> dict[str, str]:
    """The environment of a user who has logged in, with a home of their own."""
    first = {"token": pool.setup_token, "address": "operator@bench.example", "password": _PASSWORD}
    httpx2.post(f"{pool.url}/setup", json=first).raise_for_status()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
    environment |= {
        "TIDEMILL_HOME": str(pool.home),
        "TIDEMILL_PORT": str(pool.port),
        "HOME": str(pool.home / "user"),
        "XDG_CONFIG_HOME": str(pool.home / "user"),
    }
    login = [_TIDEMILL, "login", "--email", first["address"], "--password-stdin"]
    subprocess.run(login, input=_PASSWORD + "\n", env=environment, check=True, capture_output=True, text=True)
    return environment


def _run(command: Sequence[str], environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
