"""Ids that a pool has now, for completion in a shell: asked with a short deadline, and silent about every failure.

Whoever presses the tab key waits for it, and a shell shows errors in the middle of the line. A process of its own asks,
and goes on after the deadline: cut in the middle of renewing a login, it would lose the new tokens.
"""

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidemill.core.ids import short_id

DEADLINE_S = 0.8
_MOST = 50
_PIECE_BYTES = 64 * 1024

Words = Sequence[tuple[str, str]]


def live_words(place: str) -> Words:
    """The words for a place such as JOB with what each is; none after the deadline, or if anything is wrong."""
    asked = _PLACES.get(place)
    if asked is None:
        return ()
    reading, writing = os.pipe()
    if os.fork() == 0:
        _answer(asked, writing)
    os.close(writing)
    lines = _all_within(reading, DEADLINE_S).decode("utf-8", errors="replace").splitlines()
    return [(word, meaning) for word, _, meaning in (line.partition("\t") for line in lines)]


def _answer(asked: Callable[[], Words], writing: int) -> None:
    """What the process does that asks. It lets go of the terminal, so that no shell waits for it."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        with os.fdopen(writing, "w", encoding="utf-8") as out:
            out.writelines(f"{word}\t{' '.join(meaning.split())}\n" for word, meaning in asked())
    finally:
        os._exit(0)


def _all_within(descriptor: int, seconds: float) -> bytes:
    """Everything that is written to a pipe; nothing if its end does not come in time."""
    deadline, whole = time.monotonic() + seconds, b""
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(descriptor, _PIECE_BYTES)
        if not piece:
            return whole
        whole += piece
    return b""


def _items(path: str) -> list[dict[str, Any]]:
    from tidemill.cli.client.pool_caller import pool_caller

    items: list[dict[str, Any]] = pool_caller().ask("GET", path, query={"limit": str(_MOST)})["items"]
    return items


def _jobs() -> Words:
    jobs = _items("/marketplace/jobs")
    newest = [("last", "the newest job")] if jobs else []
    return newest + [(short_id(job["id"]), f"{job['kind']} {job['name'] or ''} {job['state']}") for job in jobs]


def _nodes() -> Words:
    return [(short_id(node["id"]), str(node["name"])) for node in _items("/nodes")]


def _keys() -> Words:
    return [(str(key["prefix"]), str(key["name"])) for key in _items("/account/keys")]


def _artefacts() -> Words:
    return [(short_id(artefact["id"]), str(artefact["name"] or "")) for artefact in _items("/artefacts")]


_PLACES: Mapping[str, Callable[[], Words]] = {"JOB": _jobs, "NODE": _nodes, "KEY": _keys, "ARTEFACT": _artefacts}
