"""Passwords, hashed with Argon2id. Hashing is slow and takes memory on purpose, so only a few are hashed at once.

For an address without an account a password is checked against a hash that nothing matches, so it takes as long.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tidemill.control.http.problems import RouteRefused
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.passwords import PASSWORD_MAX, normal_password

T = TypeVar("T")

MEMORY_KIB = 19 * 1024
ROUNDS = 2


class Passwords:
    """Hashes and verifies in threads of its own. A caller that would wait too long is refused."""

    def __init__(self, *, at_once: int, waiting_max: int) -> None:
        self._hasher = PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY_KIB, parallelism=1)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="passwords")
        self._most = at_once + waiting_max
        self._in_hand = 0
        self._nobodys = self._hasher.hash("the password of nobody")

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(_as_bytes(password)))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Whether the password matches the hash. Without a hash the answer is no, and takes as long."""
        right = await self._run(lambda: self._verify(password_hash or self._nobodys, password))
        return right and password_hash is not None

    def outdated(self, password_hash: str) -> bool:
        """Whether a hash was made under other rules than today's."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, _as_bytes(password[: 4 * PASSWORD_MAX]))
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], T]) -> T:
        if self._in_hand >= self._most:
            raise RouteRefused(LoginRefusal.LOGIN_BUSY)
        self._in_hand += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._in_hand -= 1


def _as_bytes(password: str) -> bytes:
    """The bytes to hash. JSON can carry lone surrogates, and a password may be any text."""
    return normal_password(password).encode("utf-8", "surrogatepass")
