"""What a node can carry out, as its agent tells it: kinds of tasks, what its sandboxes enforce, and why not more.

Like everything that a node says, it is a claim: bounded when it is read, and tried by every task that it is given.
"""

from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import Malformed, Most, Text, json_bytes, read_json

SANDBOX = "sandbox"
"""The kind of the link's `Facts` that tell it."""

BYTES_MAX = 16 * 1024
WHY_MAX = 500

Name = Annotated[str, Text(64)]


@dataclass(frozen=True)
class WhyNot:
    """What is missing, and why: a kind of task, or an ability of sandboxes."""

    what: Name
    why: Annotated[str, Text(WHY_MAX)]


@dataclass(frozen=True)
class Carries:
    """Names of kinds, and of abilities in `core.sandboxes`. A newer agent may name some that we do not know."""

    kinds: Annotated[tuple[Name, ...], Most(64)]
    abilities: Annotated[tuple[Name, ...], Most(64)]
    why_not: Annotated[tuple[WhyNot, ...], Most(128)] = ()


def why_not(what: str, why: str) -> WhyNot:
    """With as much of the sentence as can be told."""
    return WhyNot(what, "".join(one if one.isprintable() else " " for one in why)[:WHY_MAX])


def carries_bytes(carries: Carries) -> bytes:
    return json_bytes(carries)


def carries_of(body: bytes) -> Carries | Malformed:
    return read_json(Carries, body, BYTES_MAX)
