"""HTTP routes: parse, authorise, decide, one store call, view."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tidemill.control.http.problems import unless_refused
from tidemill.core.accounts.addresses import ADDRESS_MAX, Address, parse_address
from tidemill.core.clock import as_datetime
from tidemill.core.money import credits_of
from tidemill.core.reasons import REASON_MAX

API = "/api/v1"

Timestamp = Annotated[datetime, BeforeValidator(as_datetime)]
"""A view's field that is given an instant and shows RFC 3339."""

Credits = Annotated[str, BeforeValidator(credits_of)]
"""A view's field that is given micro-credits and shows credits."""


IN_ORDER = BeforeValidator(sorted)
"""For a view's list that is given a set: it is shown in the same order every time."""


class View(BaseModel):
    """What a route shows of a value, made from the value's own fields."""

    model_config = ConfigDict(from_attributes=True)


class OperatorReason(BaseModel):
    """Why an operator does something."""

    reason: str = Field(max_length=REASON_MAX, description="Kept with what is done, and shown with it.")


AddressText = Annotated[
    str, Field(max_length=ADDRESS_MAX, description="An e-mail address.", examples=["ada@example.com"])
]


def parsed_address(text: str) -> Address:
    """An address as it is kept; a refusal if it is none."""
    return unless_refused(parse_address(text))
