"""Tells that the link came or went: as log lines, or in sentences for a person at a terminal."""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

import structlog

from tidemill.link.dialled.calls import CallEnd

log = structlog.get_logger()


class LinkNews(Protocol):
    """Hears of every link that came, and of every call or link that ended without being the last."""

    def linked(self, url: str, node_id: UUID, generation: int) -> None: ...

    def lost(self, end: CallEnd, again_s: float) -> None: ...


class LoggedLinkNews:
    """A log line each, for services."""

    def linked(self, url: str, node_id: UUID, generation: int) -> None:
        log.info("linked", url=url, node_id=str(node_id), generation=generation)

    def lost(self, end: CallEnd, again_s: float) -> None:
        log.info("link lost", code=end.code, cause=end.sentence, again_s=round(again_s, 1))


class SpokenLinkNews:
    """A sentence each, for a person. The same trouble is told once, until there is a link again."""

    def __init__(self, say: Callable[[str], None], *, joins_within_s: float | None) -> None:
        """`joins_within_s` is how long a newcomer tries; its welcome is told by whoever lets it join."""
        self._say = say
        self._joins_within_s = joins_within_s
        self._told: set[str] = set()

    def linked(self, url: str, node_id: UUID, generation: int) -> None:
        if self._joins_within_s is None:
            self._say(f"This machine is linked to the pool at {url}.")
        self._joins_within_s = None
        self._told.clear()

    def lost(self, end: CallEnd, again_s: float) -> None:
        if end.sentence in self._told:
            return
        self._told.add(end.sentence)
        within = "" if self._joins_within_s is None else f" for {self._joins_within_s:g} s"
        self._say(f"{end.sentence} It is tried again{within}; Ctrl-C stops that.")
