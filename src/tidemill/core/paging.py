"""Pages of a list: `limit` and `after` in, items and `has_more` out. A cursor points behind the last item seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """`after` continues behind this page; it is None only for a list that is empty from its start."""

    items: Sequence[T]
    has_more: bool
    after: str | None
