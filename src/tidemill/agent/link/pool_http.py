"""A node's HTTP calls to its pool, with a pass that the node signs. Tells passing failures from final refusals.

The pool's clock counts, not this machine's: when the pool refuses a pass, its answer says the time there, and the next
pass is written for that time. When an address fails, the next call goes to the next address.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime

import httpx2

from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.clock import SECOND, Instant
from tidemill.core.refusals import Refusal
from tidemill.host.clocks import steady, wall

_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
_CONNECTIONS = httpx2.Limits(max_connections=16, max_keepalive_connections=4)
_PASS_US = 300 * SECOND
_RENEW_US = 60 * SECOND
_RETRY_MOST_S = 600.0
_PROBLEM_MAX = 64 * 1024
_PROBLEM_S = 60.0
_PROBLEM = "tidemill.problem"
_KNOWN: Mapping[str, Refusal] = {refusal.code: refusal for kind in (ArtefactRefusal, UploadRefusal) for refusal in kind}


class PassingFailure(Exception):
    """A call failed now and may work later: after `retry_s` seconds, if the pool said so."""

    def __init__(self, sentence: str, retry_s: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_s = retry_s


class FinalRefusal(Exception):
    """The pool refused, and will refuse again."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


class NodeHttpClient:
    """A client of one pool. `write_pass` writes a pass that is good until an instant of the pool's time."""

    def __init__(
        self, urls: Callable[[], tuple[str, ...]], trust: ssl.SSLContext, write_pass: Callable[[Instant], str]
    ) -> None:
        self._urls = urls
        self._write_pass = write_pass
        self._client = httpx2.AsyncClient(verify=trust, timeout=_TIMEOUT, limits=_CONNECTIONS, trust_env=False)
        self._turn = 0
        self._ahead_us = wall() - steady()
        self._pass = ""
        self._pass_until = Instant(0)

    async def close(self) -> None:
        await self._client.aclose()

    def turn(self) -> None:
        """Ask at the next address from now on."""
        self._turn += 1

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], content: AsyncIterable[bytes] | None = None
    ) -> httpx2.Response:
        """Make a call whose answer is short, and return all of it."""
        async with self.streamed(method, path, headers, content) as answer:
            return answer

    @asynccontextmanager
    async def streamed(
        self, method: str, path: str, headers: Mapping[str, str], content: AsyncIterable[bytes] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Make a call. The caller reads the body of a good answer. A failing network raises `PassingFailure`."""
        urls = self._urls()
        url = urls[self._turn % len(urls)]
        all_headers = {**headers, "Accept-Encoding": "identity", "Authorization": f"Node {self._current_pass()}"}
        try:
            async with self._client.stream(method, f"{url}{path}", headers=all_headers, content=content) as answer:
                if answer.status_code not in (200, 206):
                    await _read_problem(answer)
                yield answer
        except httpx2.TransportError as error:
            self.turn()
            raise PassingFailure(
                f"{url} cannot be used ({type(error).__name__} {error}).".replace(" )", ")")
            ) from error

    def expect(
        self, answer: httpx2.Response, expected: Collection[int], passing: Collection[int] = frozenset()
    ) -> None:
        """Raise the failure or the refusal that an unexpected answer means."""
        status = answer.status_code
        if status in expected:
            return
        code, sentence = _problem(answer)
        if status == 401:
            self._learn_time(answer)
            raise PassingFailure(f"The pool did not take our pass: {sentence}")
        if status in passing or status in (408, 425, 429) or status >= 500:
            if status >= 500:
                self.turn()
            raise PassingFailure(f"The pool answered {status}: {sentence}", _retry_s(answer))
        if refusal := _KNOWN.get(code):
            raise FinalRefusal(refusal)
        self.turn()
        raise PassingFailure(f"The pool answered {status}, which we do not understand: {sentence}")

    def _current_pass(self) -> str:
        now = Instant(steady() + self._ahead_us)
        if now > self._pass_until - _RENEW_US or not self._pass:
            self._pass_until = Instant(now + _PASS_US)
            self._pass = self._write_pass(self._pass_until)
        return self._pass

    def _learn_time(self, answer: httpx2.Response) -> None:
        """Learn the pool's time from its answer, to write the next pass for it."""
        self._pass = ""
        try:
            pool_time = parsedate_to_datetime(answer.headers.get("date", ""))
            self._ahead_us = int(pool_time.timestamp()) * SECOND - steady()
        except (ValueError, TypeError, OverflowError):
            return


async def _read_problem(answer: httpx2.Response) -> None:
    """Read a short body whole. Drop a long one, whatever length was announced: it explains nothing."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(_PROBLEM_S):
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > _PROBLEM_MAX:
                    return
        answer.extensions[_PROBLEM] = bytes(body)


def _problem(answer: httpx2.Response) -> tuple[str, str]:
    """Code and sentence of a problem. Of any other body nothing is used: a stranger may have written it."""
    try:
        problem = json.loads(answer.extensions[_PROBLEM])
        return str(problem["code"])[:100], str(problem["detail"])[:300]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "", "no reason was given."


def _retry_s(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("retry-after", "")
    return min(float(text), _RETRY_MOST_S) if text.isascii() and text.isdigit() and len(text) < 10 else None
