"""Numbers in a request's body as they were written: decimals become Decimals, never floats. For routes with money."""

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tidemill.control.http.guard import GuardedRoute


class ExactRoute(GuardedRoute):
    """For a router's `route_class`. FastAPI asks the request for its JSON, so the request's class parses it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def exact(request: Request) -> Response:
            return await answer(_ExactRequest(request.scope, request.receive))

        return exact


class _ExactRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), parse_float=Decimal)
