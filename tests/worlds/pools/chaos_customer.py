"""A customer who orders, looks, extends and calls off while the pool breaks, and asks again until there is an answer.

Every request that changes something has a key of its own, so that asking again changes nothing twice.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

import httpx2

from tests.control.jobs.test_jobs import JOBS
from tests.worlds.databases.dispatch_world import result_of
from tests.worlds.pools.pool import TRUST

SIDE, LARGE = 24, 64
"""Of products that always fit into a receipt, and of such that may be uploaded."""

PATIENCE_S = 60.0
OPEN_MAX = 12
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass
class ChaosCustomer:
    """Works in a thread until it is told to stop. `ports` are those of all control processes."""

    ports: Sequence[int]
    headers: dict[str, str]
    random: Random
    jobs: list[str] = field(default_factory=list)
    asked: int = 0
    again: int = 0
    trouble: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open: list[str] = []
        self._seeds = itertools.count(1_000_000, 100)
        self._keys = itertools.count()
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._enough.set()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), "it asks and asks"

    def order(self, tasks: int, side: int = SIDE, *, knows: bool = False) -> str:
        """A confirmed job. Whoever knows the results says so."""
        seed = next(self._seeds)
        parameters = {"m": side, "n": side, "k": side, "element": "int8", "seed": seed}
        body: dict[str, Any] = {"kind": "matmul", "parameters": parameters, "tasks": tasks}
        if knows:
            body["expected"] = [sha256(result_of(seed + number, side)).hexdigest() for number in range(tasks)]
        made = self.ask("POST", "", body)
        assert made.status_code == 201, made.text
        job_id: str = made.json()["id"]
        confirmed = self.ask("POST", f"/{job_id}/confirm")
        assert confirmed.status_code == 200, confirmed.text
        self.jobs.append(job_id)
        return job_id

    def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        """Ask whichever process answers, until one does."""
        key = {"Idempotency-Key": f"key-{next(self._keys)}"} if method == "POST" else {}
        deadline, self.asked = time.monotonic() + PATIENCE_S, self.asked + 1
        while True:
            url = f"http://127.0.0.1:{self.random.choice(self.ports)}{JOBS}{path}"
            try:
                headers = {**self.headers, **key}
                answer = httpx2.request(method, url, json=body, headers=headers, verify=TRUST, timeout=8)
                if answer.status_code not in _AGAIN:
                    return answer
                last = answer.text
            except httpx2.HTTPError as error:
                last = repr(error)
            assert time.monotonic() < deadline, f"no answer within {PATIENCE_S:.0f} s: {last}"
            self.again += 1
            time.sleep(0.1)

    def _run(self) -> None:
        try:
            while not self._enough.wait(self.random.uniform(0.0, 0.4)):
                self._act()
        except AssertionError as error:
            self.trouble.append(str(error))

    def _act(self) -> None:
        self._open = [job_id for job_id in self._open if self._is_open(job_id)] if len(self._open) > 5 else self._open
        draw = self.random.random()
        if len(self._open) < OPEN_MAX and (draw < 0.6 or not self._open):
            large = self.random.random() < 0.2
            knows = large or self.random.random() < 0.5
            self._open.append(self.order(self.random.randint(1, 12), LARGE if large else SIDE, knows=knows))
        elif draw < 0.75:
            assert self.ask("POST", f"/{self.random.choice(self._open)}/cancel").status_code in (200, 409)
        elif draw < 0.85:
            answer = self.ask("POST", f"/{self.random.choice(self._open)}/extend", {"hours": 1})
            assert answer.status_code in (200, 409), answer.text
        else:
            assert self.ask("GET", f"/{self.random.choice(self._open)}/resources").status_code == 200

    def _is_open(self, job_id: str) -> bool:
        return self.ask("GET", f"/{job_id}").json()["ended_at"] is None
