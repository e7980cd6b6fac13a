"""HTTP routes: parse, authorise, decide, one store call, view."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from tidemill.core.clock import as_datetime

API = "/api/v1"

Timestamp = Annotated[datetime, BeforeValidator(as_datetime)]
"""A view's field that is given an instant and shows RFC 3339."""


class View(BaseModel):
    """What a route shows of a value, made from the value's own fields."""

    model_config = ConfigDict(from_attributes=True)
