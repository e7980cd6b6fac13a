"""Calls a pool over HTTP. A refusal becomes a sentence for the user; a pool that cannot be reached is a fault.

A password or a token never crosses a network in the clear: plain HTTP is for this machine only, and goes through no
proxy. Redirects are not followed.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.accounts.keys import KeyRefusal
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.permissions import PermissionRefusal
from tidemill.core.accounts.second_factor import SecondFactorRefusal
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.faults import Fault, NotRunning
from tidemill.core.nodes.pool_urls import is_loopback
from tidemill.core.refusals import Refusal

if TYPE_CHECKING:
    import httpx2

_API = "/api/v1"
_DEADLINE_S = 30.0
_QUICK_S = 5.0
_LONG_S = 600.0
"""Before it answers, a pool may have to read the bytes of an upload again."""

_PORTS = {"http": 80, "https": 443}
_USER_AGENT = f"tidemill command line ({os.uname().sysname})"
"""Without a version: a pool may end a session when another program continues it."""

_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+")
_WRITTEN = "A pool's address is written as https://pool.example.com, with a port if it has one of its own."

_SENTENCES: Mapping[str, str] = {
    "rate_limited": "Too many requests in a short time.",
    LoginRefusal.LOGIN_FAILED.code: "The address, the password or the code is wrong: try again, or `tidemill forgot`.",
    LoginRefusal.LOGIN_LOCKED.code: "Too many failures: wait, or reset your password with `tidemill forgot`.",
    LoginRefusal.SECOND_FACTOR_NEEDED.code: "This account has a second factor: give its code with --code.",
    PermissionRefusal.UNAUTHENTICATED.code: "You are not logged in: run `tidemill login`.",
    PermissionRefusal.SECOND_FACTOR_REQUIRED.code: "Operators use a second factor: run `tidemill second-factor on`.",
    PermissionRefusal.SESSION_NEEDED.code: "An API key cannot do this: unset TIDEMILL_API_KEY, and log in.",
    SessionRefusal.SESSION_OVER.code: "Your session is over.",
    SessionRefusal.TOKEN_UNKNOWN.code: "The pool does not know your session: its time is over, or another pool answers "
    "at this address. Your profile is kept.",
    SecondFactorRefusal.SECOND_FACTOR_ON.code: "The second factor is on: `tidemill second-factor off` comes first.",
    SecondFactorRefusal.SECOND_FACTOR_OFF.code: "The second factor is not on: run `tidemill second-factor on`.",
    KeyRefusal.UNKNOWN_KEY.code: "You have no such API key: `tidemill keys` lists them.",
}
"""Sentences for people, where the pool's own one is for programs and names routes and headers."""


def sentence_of(refusal: Refusal) -> str:
    """A refusal in our own words for people, if we have any."""
    return _SENTENCES.get(refusal.code, refusal.sentence)


class PoolRefused(CommandRefused):
    """The pool refused. The code and the status are for us, the sentence for the user."""

    def __init__(self, code: str, sentence: str, status: int = 0, errors: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(sentence)
        self.code = code
        self.status = status
        self.errors = errors
        """What is wrong with each field, where that is known: `field` and `sentence`."""


class PoolClient:
    """A pool at its address."""

    def __init__(self, url: str) -> None:
        self.url = url

    def expect_answer(self) -> None:
        """Raise a fault unless a pool answers here. It is told nothing of us."""
        self._send("GET", "/healthz", timeout=_QUICK_S)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        token: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """A route's answer; raises if it is a refusal."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = self._send(method, _API + path, json=body, headers=headers, params=query)
        if not answer.is_success:
            raise _refusal_of(self.url, answer)
        try:
            return answer.json() if answer.content else None
        except ValueError as error:
            raise _not_a_pool(self.url, answer) from error

    def exchange(
        self, method: str, path: str, *, token: str, headers: Mapping[str, str], content: Iterable[bytes] | bytes = b""
    ) -> "httpx2.Headers":
        """The headers of a route's answer; raises if it is a refusal. Bytes are sent as they are read."""
        import httpx2

        all_headers = {**headers, "Authorization": f"Bearer {token}"}
        patient = httpx2.Timeout(_DEADLINE_S, read=_LONG_S)
        answer = self._send(method, _API + path, headers=all_headers, content=content, timeout=patient)
        if not answer.is_success:
            raise _refusal_of(self.url, answer)
        return answer.headers

    @contextmanager
    def opened(self, path: str, *, token: str, headers: Mapping[str, str]) -> "Iterator[httpx2.Response]":
        """A route's answer, to be read piece by piece; raises if it is a refusal."""
        import httpx2

        all_headers = {**headers, "Authorization": f"Bearer {token}"}
        try:
            with self._client.stream("GET", _API + path, headers=all_headers) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _refusal_of(self.url, answer)
                yield answer
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(self.url, error) from error

    def _send(self, method: str, path: str, **parts: Any) -> "httpx2.Response":
        import httpx2

        try:
            answer = self._client.request(method, path, **parts)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(self.url, error) from error
        if "x-request-id" not in answer.headers:
            raise _not_a_pool(self.url, answer)
        return answer

    @cached_property
    def _client(self) -> "httpx2.Client":
        import httpx2

        # Without TLS there is nothing to verify, and the environment's proxies could read the call.
        secure = self.url.startswith("https:")
        headers = {"User-Agent": _USER_AGENT, "Accept": "application/json"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=_DEADLINE_S, verify=secure, trust_env=secure)


def pool_address(text: str) -> str:
    """The pool's address in one spelling. Refuses an address to which no secret may be sent."""
    scheme, host, port = _parts(text)
    scheme = scheme or ("http" if is_loopback(host) else "https")
    if scheme not in _PORTS or (scheme == "http" and not is_loopback(host)):
        raise CommandRefused(f"Passwords and tokens go to {host} by HTTPS only: write https://{host}.")
    host_text = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host_text}" + (f":{port}" if port not in (None, _PORTS[scheme]) else "")


def moment(text: str | None) -> str:
    """A time in an answer, as people read it."""
    return "" if text is None else f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S}"


def _parts(text: str) -> tuple[str, str, int | None]:
    """Scheme, host and port. Refuses anything else: programs parse it differently, and a token could go astray."""
    try:
        parts = urlsplit(text.strip() if "://" in text else f"//{text.strip()}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise CommandRefused(_WRITTEN) from None
    has_nothing_else = not (parts.username or parts.password or parts.path.strip("/") or parts.query or parts.fragment)
    if not has_nothing_else or not _HOST.fullmatch(host):
        raise CommandRefused(_WRITTEN)
    return parts.scheme, host, port


def _refusal_of(url: str, answer: "httpx2.Response") -> Exception:
    try:
        problem = answer.json()
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        code = answer.headers.get("tidemill-problem", "")
        if not code:
            return _not_a_pool(url, answer)
        detail = f"The pool says no ({code})."  # an answer to HEAD has no body
    errors = _errors_of(answer)
    sentence = _SENTENCES.get(code, detail)
    if len(errors) > 1:
        sentence = "\n".join([*(error["sentence"] for error in errors), "Correct what is named, then send it again."])
    if answer.status_code == 429:
        sentence += f" Try again in {answer.headers.get('retry-after', 'some')} s."
    return Fault(sentence) if answer.status_code >= 500 else PoolRefused(code, sentence, answer.status_code, errors)


def _errors_of(answer: "httpx2.Response") -> Sequence[Mapping[str, str]]:
    """The errors of an answer, as far as they have the form that we know: what answers may be anything."""
    try:
        told = answer.json().get("errors")
    except (ValueError, AttributeError):
        return ()
    if not isinstance(told, list):
        return ()
    read = [(error.get("field"), error.get("sentence")) for error in told if isinstance(error, dict)]
    return [
        {"field": field, "sentence": sentence}
        for field, sentence in read
        if isinstance(field, str) and isinstance(sentence, str)
    ]


def _not_a_pool(url: str, answer: "httpx2.Response") -> Fault:
    return Fault(f"What answers at {url} is no pool (status {answer.status_code}): check the address.")


def _unreachable(url: str, error: Exception) -> Fault:
    import httpx2

    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Fault(
            f"The certificate at {url} cannot be trusted ({error}): use the name it is for, "
            "and set SSL_CERT_FILE if your own authority signed it."
        )
    if isinstance(error, httpx2.ConnectError) and is_loopback(urlsplit(url).hostname or ""):
        return NotRunning(f"Nothing answers at {url}: start the pool with `tidemill up`, or set TIDEMILL_URL.")
    return Fault(f"{url} cannot be reached ({error or type(error).__name__}): check the address and your network.")
