"""The server's configuration: written before every start, and recognisable on a running server.

Our file includes the one `initdb` wrote and overrides it, so the settings here always apply. A hash of the settings and
the programs is on the server's command line; an orphan with another hash is not adopted but restarted.
"""

import hashlib
from pathlib import Path

from tidemill.store.embedded.binaries import Binaries
from tidemill.store.embedded.layout import PORT, ServerLayout, write_file
from tidemill.store.embedded.system_user import SystemUser

FILE = "tidemill.conf"
MARK = "tidemill.configuration="
ACCESS = "local all all scram-sha-256\n"

SETTINGS = {
    # Who can connect: processes of this machine, through the socket, with a password.
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "max_connections": "60",
    "idle_in_transaction_session_timeout": "60s",  # an open writing transaction would stall readers of the event log
    # Durability: commits are on disk; 512 MB of log keep crash recovery to seconds; a backup is a dump.
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "512MB",
    # Memory is taken as the data needs it: the books' indexes of ten million transfers outgrow 128 MB.
    "shared_buffers": "256MB",
    # Few processes and little memory at rest.
    "huge_pages": "off",  # huge pages would take all shared memory at once, used or not
    "io_method": "sync",
    "max_logical_replication_workers": "0",
    "autovacuum_worker_slots": "3",
    "autovacuum_max_workers": "3",
    "autovacuum_naptime": "10s",  # the queue and the leases are small tables whose rows come and go by the thousand
    "jit": "off",
    # A week of logs, each day's replacing last week's.
    "logging_collector": "on",
    "log_directory": "../log",  # relative to the data, so no path of the user's is ever quoted here
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # The same everywhere.
    "lc_messages": "C",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def write_configuration(layout: ServerLayout, account: SystemUser) -> None:
    """Put our settings and access rules in place."""
    write_file(layout.data / FILE, _text(layout), account)
    write_file(layout.data / "pg_hba.conf", ACCESS, account)


def server_arguments(layout: ServerLayout, binaries: Binaries, socket_directory: Path) -> list[str | Path]:
    """The command that starts the server."""
    return [
        binaries.postgres,
        *("-D", layout.data),
        *("-c", f"config_file={layout.data / FILE}"),
        *("-k", socket_directory),
        *("-c", MARK + mark(layout, binaries)),
    ]


def mark(layout: ServerLayout, binaries: Binaries) -> str:
    """Equal for two servers only if they run the same programs with the same settings."""
    parts = (_text(layout), ACCESS, str(binaries.directory), binaries.version)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def _text(layout: ServerLayout) -> str:
    settings = SETTINGS | {"cluster_name": layout.cluster_name}
    lines = [f"{name} = '{value}'" for name, value in settings.items()]
    return "\n".join(["# Written by Tidemill at every start.", "include = 'postgresql.conf'", *lines, ""])
