"""What a node can carry out, as its agent reports it: kinds of tasks, what its sandboxes enforce, and why not more.

Like every report of a node, it is a claim: bounded when it is read, and tested by every task that the node gets.
"""

from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import Malformed, Most, Text, json_bytes, read_json

SANDBOX = "sandbox"
"""The kind of the link's `Facts` that report it."""

BYTES_MAX = 16 * 1024
WHY_MAX = 500

Name = Annotated[str, Text(64)]


@dataclass(frozen=True)
class MissingAbility:
    """What is missing, and why: a kind of task, or an ability of sandboxes."""

    what: Name
    why: Annotated[str, Text(WHY_MAX)]


@dataclass(frozen=True)
class NodeAbilities:
    """Names of kinds, and of abilities in `core.sandboxes`. A newer agent may name some that we do not know."""

    kinds: Annotated[tuple[Name, ...], Most(64)]
    abilities: Annotated[tuple[Name, ...], Most(64)]
    why_not: Annotated[tuple[MissingAbility, ...], Most(128)] = ()


def missing_ability(what: str, why: str) -> MissingAbility:
    """With as much of the sentence as can be shown."""
    return MissingAbility(what, "".join(character if character.isprintable() else " " for character in why)[:WHY_MAX])


def abilities_bytes(carries: NodeAbilities) -> bytes:
    return json_bytes(carries)


def abilities_of(body: bytes) -> NodeAbilities | Malformed:
    return read_json(NodeAbilities, body, BYTES_MAX)
