"""Problem details (RFC 9457): every "no" has a stable code, and a sentence that says what to do.

`statuses.py` says which refusal has which status. No internals leak into an answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from tidemill.control.http.statuses import STATUS, RequestRefusal
from tidemill.core.accounts.operator_word import OperatorWord, OperatorWordRefusal
from tidemill.core.faults import DatabaseFault, DiskFull, Fault
from tidemill.core.jobs.kinds.kind import FieldError, TaskObjection
from tidemill.core.money import AmountObjection, credits_of
from tidemill.core.refusals import Refusal

T = TypeVar("T")

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"


_TITLES = {
    400: ("bad_request", "The request cannot be understood."),
    401: ("unauthenticated", "Who are you?"),
    402: ("insufficient_funds", "There is not enough money for it."),
    403: ("forbidden", "Not yours to do."),
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address does not take that method."),
    409: ("conflict", "The state does not allow it."),
    410: ("gone", "It is no longer kept here."),
    412: ("precondition_failed", "The request expects something else than there is."),
    415: ("unsupported_media_type", "The body is of another kind than is taken here."),
    416: ("range_not_satisfiable", "There is no such range of bytes."),
    421: ("wrong_host", "The request was meant for somebody else."),
    413: ("body_too_large", "The body is too large."),
    422: ("invalid_request", "Some of the values do not fit."),
    423: ("busy", "Another request is at work on it."),
    429: ("rate_limited", "Too many requests."),
    460: ("checksum_mismatch", "The bytes were damaged on the way."),
    500: ("internal", "Something broke on our side."),
    503: ("unavailable", "The pool cannot answer right now."),
}


_OUTSIDE = {
    DatabaseFault.code: "The pool's database cannot be used right now: try again in a moment.",
    DiskFull.code: "The pool's disk is full: its operator has to make space.",
}
"""What callers are told of a fault. The fault's own sentence may name paths and hosts, and goes to the log."""


class ProblemDetails(BaseModel):
    """An answer of "no"."""

    type: str = Field(description="A URI that names the kind of problem.")
    title: str = Field(description="The kind of problem, in a sentence.")
    status: int
    code: str = Field(description="Stable: programs may match it.")
    detail: str = Field(description="What is wrong and what to do.")
    request_id: str = Field(description="Quote it when you ask for help.")
    errors: list[dict[str, str]] | None = Field(None, description="Which fields, and why each.")
    amounts: dict[str, str] | None = Field(None, description="Where money is in the way: the amounts, by name.")


class RouteRefused(Exception):
    """A route's way to answer with a refusal. A transaction it passes through is rolled back."""

    def __init__(
        self,
        refusal: Refusal,
        retry_after_s: int | None = None,
        *,
        sentence: str | None = None,
        headers: Mapping[str, str] | None = None,
        amounts_uc: Mapping[str, int] | None = None,
        errors: Sequence[FieldError] = (),
    ) -> None:
        super().__init__(sentence or refusal.sentence)
        self.errors = [{"field": error.field, "sentence": error.sentence} for error in errors]
        self.refusal = refusal
        self.sentence = sentence or refusal.sentence
        self.amounts = {name: credits_of(amount_uc) for name, amount_uc in (amounts_uc or {}).items()}
        self.headers = {**(headers or {}), **({} if retry_after_s is None else {"Retry-After": str(retry_after_s)})}


def unless_refused(answer: T | Refusal | TaskObjection | AmountObjection) -> T:
    """The answer of a decision or the store; a refusal is raised, an objection with its own sentence."""
    if isinstance(answer, Refusal):
        raise RouteRefused(answer)
    if isinstance(answer, TaskObjection):
        raise RouteRefused(answer.refusal, sentence=answer.sentence, errors=answer.errors)
    if isinstance(answer, AmountObjection):
        raise RouteRefused(answer.refusal, sentence=answer.sentence, amounts_uc=answer.amounts)
    return answer


def unless_too_new(answer: T | Refusal | TaskObjection | AmountObjection, word: OperatorWord) -> T:
    """The answer of a decision of two operators. Whose word does not count yet is told from when it does."""
    if answer is OperatorWordRefusal.OPERATOR_TOO_NEW:
        raise RouteRefused(OperatorWordRefusal.OPERATOR_TOO_NEW, sentence=word.too_new)
    return unless_refused(answer)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: the problems it may answer with."""
    return {
        status: {"model": ProblemDetails, "description": _TITLES[status][1], "content": {MEDIA_TYPE: {}}}
        for status in (*statuses, 503)
    }


def install(app: FastAPI) -> None:
    """Answer every exception that a route lets through."""

    @app.exception_handler(RouteRefused)
    async def refused(request: Request, error: RouteRefused) -> JSONResponse:
        status, amounts = STATUS[error.refusal], error.amounts or None
        answer = problem(request, status, error.refusal.code, error.sentence, error.errors or None, amounts=amounts)
        answer.headers.update(error.headers)
        return answer

    @app.exception_handler(Fault)
    async def fault(request: Request, error: Fault) -> JSONResponse:
        log.warning("fault", code=error.code, cause=str(error))
        return problem(request, 503, error.code, _OUTSIDE.get(error.code, _TITLES[503][1]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        answer = problem(request, error.status_code, *_sentence(request, error.status_code))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [
            {"field": ".".join(map(str, detail["loc"])), "sentence": f"{_what(detail)}."} for detail in error.errors()
        ]
        first = f"{errors[0]['field']}: {errors[0]['sentence']}" if errors else _TITLES[422][1]
        return problem(request, 422, "invalid_request", first, errors)

    @app.exception_handler(Exception)
    async def bug(request: Request, _: Exception) -> JSONResponse:
        return problem(request, 500, *_sentence(request, 500))


def refusal(request: Request, refused: Refusal) -> JSONResponse:
    return problem(request, STATUS[refused], refused.code, refused.sentence)


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    amounts: dict[str, str] | None = None,
) -> JSONResponse:
    content = ProblemDetails(
        type=f"/problems/{code}",
        title=_TITLES.get(status, ("", "The request failed."))[1],
        status=status,
        code=code,
        detail=detail,
        request_id=request.scope.get("request_id", ""),
        errors=errors,
        amounts=amounts,
    )
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status, {})
    headers["Tidemill-Problem"] = code  # an answer to HEAD has no body to carry it
    return JSONResponse(content.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)


def _what(detail: Mapping[str, Any]) -> str:
    """What is wrong with a value. Of an id the reader counts groups and characters, which helps nobody."""
    is_id = detail["type"].startswith("uuid")
    return "This is no whole id, such as 0190a5c2-7e3b-7d21-9f4a-1c5d9fc8e31a" if is_id else str(detail["msg"])


def _sentence(request: Request, status: int) -> tuple[str, str]:
    code, title = _TITLES.get(status, ("http_error", "The request failed."))
    hints = {
        404: f"There is nothing at {request.url.path}: the paths are listed at /api/v1/openapi.json.",
        405: f"{request.method} is not possible at {request.url.path}: /api/v1/openapi.json lists what is.",
        413: RequestRefusal.BODY_TOO_LARGE.sentence,
        500: "Something broke on our side and has been logged: try again, and quote the request id if it stays.",
    }
    return code, hints.get(status, title)
