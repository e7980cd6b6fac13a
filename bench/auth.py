"""What authentication costs: requests a CPU-second of a control process with it and without.

Prints one line of JSON. `authenticated_per_cpu_s` is a route behind the guard (a session's token, the table of
permissions, the caller's limit with its headers), `open_per_cpu_s` is /healthz, whose answer is as small and which has
no guard; `with_key` is the same route with an API key. Measured in turns against one real process, by its own CPU time.
"""

import argparse
import asyncio
import json
import re
import secrets
import sys
from dataclasses import dataclass

import httpx2
import psutil
import uvloop
from pools import BenchPool, pool_of_its_own

API = "/api/v1"
CONNECTIONS = 8
PASSWORD = secrets.token_hex(12)
ADDRESS = "bench@pool.example"
UNLIMITED = {
    **{f"TIDEMILL_LIMITS_{who}_PER_MINUTE": "10000000" for who in ("ACCOUNT", "CUSTOMER", "STRANGER")},
    "TIDEMILL_LOGIN_ACCESS_TOKEN_S": "1h",
    "TIDEMILL_ARTEFACTS_FREE_BYTES": "100GiB",
}
"""Limits that no benchmark reaches."""


@dataclass
class Cost:
    """Requests answered, and the CPU time they took."""

    requests: int = 0
    cpu_s: float = 0

    @property
    def per_cpu_s(self) -> float:
        return self.requests / self.cpu_s


async def ask(port: int, request: bytes, count: int) -> None:
    """Send one request after another on a connection, each when the last was answered with 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = re.search(rb"content-length: (\d+)", head)
        assert length, head
        await reader.readexactly(int(length[1]))
    writer.close()


async def measure(cost: Cost, process: psutil.Process, port: int, request: bytes, count: int) -> None:
    before = process.cpu_times()
    await asyncio.gather(*(ask(port, request, count // CONNECTIONS) for _ in range(CONNECTIONS)))
    after = process.cpu_times()
    cost.requests += count // CONNECTIONS * CONNECTIONS
    cost.cpu_s += after.user + after.system - before.user - before.system


def get(path: str, token: str | None = None) -> bytes:
    authorization = f"authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{authorization}\r\n".encode()


async def compare(process: psutil.Process, port: int, rounds: int, count: int) -> dict[str, float]:
    token, key = credentials(f"http://127.0.0.1:{port}{API}")
    opened, authenticated, with_key = Cost(), Cost(), Cost()
    turns = [
        (opened, get("/healthz")),
        (authenticated, get(f"{API}/auth/check", token)),
        (with_key, get(f"{API}/auth/check", key)),
    ]
    for warming_up in (True, *(False for _ in range(rounds))):
        for cost, request in turns:
            await measure(Cost() if warming_up else cost, process, port, request, count)
    return {
        "authenticated_per_cpu_s": round(authenticated.per_cpu_s),
        "open_per_cpu_s": round(opened.per_cpu_s),
        "ratio": round(authenticated.per_cpu_s / opened.per_cpu_s, 2),
        "with_key_per_cpu_s": round(with_key.per_cpu_s),
        "with_key_ratio": round(with_key.per_cpu_s / opened.per_cpu_s, 2),
        "guard_us": round(1e6 / authenticated.per_cpu_s - 1e6 / opened.per_cpu_s),
    }


def credentials(api: str) -> tuple[str, str]:
    """A session's access token and an API key of the first operator's account."""
    login = {"address": ADDRESS, "password": PASSWORD}
    token = httpx2.post(f"{api}/auth/login", json=login).raise_for_status().json()["access_token"]
    bearer = {"authorization": f"Bearer {token}"}
    roles = {"roles": ["customer"]}
    httpx2.post(f"{api}/account/roles", json=roles, headers=bearer).raise_for_status()
    wanted = {"name": "bench", "role": "customer", "scopes": ["account:read"]}
    made = httpx2.post(f"{api}/account/keys", json=wanted, headers=bearer).raise_for_status()
    return token, made.json()["key"]


def set_up(pool: BenchPool) -> None:
    """Give the pool its first operator."""
    asked = {"token": pool.setup_token, "address": ADDRESS, "password": PASSWORD}
    httpx2.post(f"{pool.url}/setup", json=asked).raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=5, help="how often each measurement is taken")
    parser.add_argument("--requests", type=int, default=4000, help="how many requests one measurement takes")
    options = parser.parse_args()
    with pool_of_its_own(UNLIMITED) as pool:
        set_up(pool)
        figures = uvloop.run(compare(psutil.Process(pool.pid), pool.port, options.rounds, options.requests))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
