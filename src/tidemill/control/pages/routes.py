"""The pool's own pages: to set it up, to log in, to look after one's account.

They are the same for everybody. A page's script uses the API like any program and shows its answers as text. Its policy
lets it run no other script, send nothing elsewhere and be framed by nobody.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePath
from string import Template

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from tidemill.control.http.guard import GuardedRoute

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

_NAMES = ("setup", "login", "register", "confirm", "forgot", "reset", "account")
_PAGES: Mapping[str, str] = {"/": "welcome", **{f"/{name}": name for name in _NAMES}}
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".png": "image/png"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_FOLDER = files("tidemill.control").joinpath("pages")
_SHELL = Template(_FOLDER.joinpath("shell.html").read_text("utf-8"))
_FILES = {file.name: file.read_bytes() for file in _FOLDER.iterdir() if PurePath(file.name).suffix in _MEDIA_TYPES}
_MARKS = {name: f'"{hashlib.sha256(content).hexdigest()[:32]}"' for name, content in _FILES.items()}
_WHOLE = {
    path: _SHELL.substitute(page=name, main=_FOLDER.joinpath(f"{name}.html").read_text("utf-8"))
    for path, name in _PAGES.items()
}


async def page(request: Request) -> HTMLResponse:
    """One of the pages."""
    return HTMLResponse(_WHOLE[request.scope["route"].path], headers=_HEADERS)


for path in _PAGES:
    router.add_api_route(path, page, methods=["GET"])


@router.get("/pages/{name}")
async def file(name: str, request: Request) -> Response:
    """A file of a page: its script, its style, a picture. Browsers ask whether their copy is still valid."""
    if name not in _FILES:
        raise HTTPException(404)
    headers = {"Cache-Control": "no-cache", "ETag": _MARKS[name]}
    if request.headers.get("if-none-match") == _MARKS[name]:
        return Response(status_code=304, headers=headers)
    return Response(_FILES[name], media_type=_MEDIA_TYPES[PurePath(name).suffix], headers=headers)
