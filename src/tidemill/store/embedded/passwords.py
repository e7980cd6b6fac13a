"""The roles of the cluster, their passwords, and their URLs.

The passwords are made once, before the cluster that uses them, and are in a file that only we can read. The superuser
makes and renames databases, the owner changes the schema, the program can only use what the owner granted it.
"""

import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tidemill.core.faults import DatabaseFault
from tidemill.store.address import DatabaseUrls, socket_url
from tidemill.store.embedded.layout import PORT, ServerLayout, write_file

SUPERUSER = "postgres"
OWNER = "tidemill_owner"
PROGRAM = "tidemill"
DATABASE = "tidemill"


@dataclass(frozen=True)
class RolePasswords:
    """One for each role. Letters, digits, hyphens and underscores only, so that SQL needs no escapes."""

    superuser: str
    owner: str
    program: str


def new_passwords() -> RolePasswords:
    """New random passwords."""
    return RolePasswords(*(secrets.token_urlsafe(24) for _ in fields(RolePasswords)))


def write_passwords(layout: ServerLayout, passwords: RolePasswords) -> None:
    """Store passwords where only we can read them."""
    write_file(layout.passwords, json.dumps(asdict(passwords)) + "\n")


def read_passwords(layout: ServerLayout) -> RolePasswords | None:
    """The stored passwords, if there are any."""
    try:
        return RolePasswords(**json.loads(layout.passwords.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except PermissionError:
        raise DatabaseFault(
            f"The file {layout.passwords} belongs to another user: run this command as the user who started the pool."
        ) from None
    except (ValueError, TypeError):
        raise DatabaseFault(f"The file {layout.passwords} is damaged: remove it, and new ones are made.") from None


def database_urls(passwords: RolePasswords, socket_directory: Path) -> DatabaseUrls:
    """How the program and the owner reach the pool's database."""
    return DatabaseUrls(
        program=_url(socket_directory, PROGRAM, passwords.program, DATABASE),
        owner=_url(socket_directory, OWNER, passwords.owner, DATABASE),
    )


def superuser_url(passwords: RolePasswords, socket_directory: Path) -> str:
    """How the superuser reaches the maintenance database."""
    return _url(socket_directory, SUPERUSER, passwords.superuser, "postgres")


def _url(socket_directory: Path, role: str, password: str, database: str) -> str:
    """A URL with the port, because a PGPORT in the caller's environment would change it."""
    return f"{socket_url(str(socket_directory), role, password, database)}&port={PORT}"
