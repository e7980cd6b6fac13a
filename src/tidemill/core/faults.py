"""Faults: the world failing (network, database, disk, a wrong set-up).

One tree. A fault's text is the sentence the user reads: what is wrong, then what to do. Faults are caught at the edge
of a loop, a route or a command, nowhere else.
"""


class Fault(Exception):
    """The world failed us. `code` is stable and may be matched by programs."""

    code = "fault"


class SettingsFault(Fault):
    """A setting is unknown or wrong; nothing was started."""

    code = "settings_wrong"


class DatabaseFault(Fault):
    """The database cannot be used right now."""

    code = "database_unavailable"


class NotRunning(DatabaseFault):
    """There is no server to attach to."""

    code = "not_running"


class AlreadyRunning(DatabaseFault):
    """Another process owns what we were asked to own."""

    code = "already_running"


class DiskFull(DatabaseFault):
    """Nothing more can be written until space is made."""

    code = "disk_full"


class WrongVersion(DatabaseFault):
    """The data was written by a version that this program cannot read."""

    code = "wrong_version"


class SecretsFault(Fault):
    """A secret, or a key to secrets, is missing or does not open."""

    code = "secrets_unreadable"


class MailFault(Fault):
    """No letter can be handed over right now, or one cannot be read."""

    code = "mail_unavailable"


class ArtefactFault(Fault):
    """The place of artefacts cannot be used, or does not hold what it should."""

    code = "artefacts_unavailable"


class AgentFault(Fault):
    """The agent cannot use its home, its identity or its spool."""

    code = "agent_unusable"
