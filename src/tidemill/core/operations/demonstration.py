"""The people of a demonstration, and where its home keeps their secrets.

Whoever can read the home can act as any of them: that is what a demonstration is for.
"""

from collections.abc import Mapping
from pathlib import Path

from tidemill.core.accounts.roles import Role

FOLDER = "demonstration"
OPERATOR = "operator"
CUSTOMER = "customer"
OWNERS = ("ada", "ben", "cleo", "dan")

PEOPLE: Mapping[str, Role] = {
    OPERATOR: Role.OPERATOR,
    CUSTOMER: Role.CUSTOMER,
    **dict.fromkeys(OWNERS, Role.PROVIDER),
}
"""Each person's name, and the role that they begin with."""


NODES_FOLDER = "nodes"
"""Where the home keeps the homes of the agents, each called after the node's owner."""


def address_of(name: str) -> str:
    return f"{name}@demo.example"


def key_file(home: Path, name: str) -> Path:
    """The file of a person's API key, in the home of a demonstration."""
    return home / FOLDER / f"{name}.key"


def password_file(home: Path, name: str) -> Path:
    return home / FOLDER / f"{name}.password"


def authenticator_file(home: Path, name: str) -> Path:
    """The secret of a person's second factor, if they have one."""
    return home / FOLDER / f"{name}.authenticator"
