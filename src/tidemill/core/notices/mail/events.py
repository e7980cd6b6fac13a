"""What happens to letters, as far as operators must know. Who a letter was for is not told: the log keeps for ever."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event


@dataclass(frozen=True)
class MailFailed(Event, kind="mail.failed"):
    """A letter was given up: it was rejected, it was tried for too long, or its row cannot be read."""

    mail_id: UUID
    letter: str
    cause: str

    @property
    def subject(self) -> str:
        return f"mail:{self.mail_id}"
