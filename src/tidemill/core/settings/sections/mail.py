"""Settings of mail: who writes, through which server, for how long it is tried.

A password goes over the network only inside TLS, unless the server is on this machine or an operator says otherwise.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tidemill.core.accounts.addresses import Address, parse_address
from tidemill.core.settings.definition import SettingScope, optional, setting
from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue
from tidemill.core.settings.kinds.quantities import DURATION, INTEGER
from tidemill.core.settings.kinds.texts import HOST, MASK, PATH, SWITCH, TEXT, WEB_URL, choice


class SmtpTls(StrEnum):
    """How the connection to the SMTP server is guarded."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


PORTS = {SmtpTls.STARTTLS: 587, SmtpTls.TLS: 465, SmtpTls.NONE: 25}
"""The port of each, where none is set."""


def _read_address(raw: object) -> str | UnreadableValue:
    address = parse_address(raw) if isinstance(raw, str) else None
    return address.text if isinstance(address, Address) else UnreadableValue()


def _read_secret(raw: object) -> str | UnreadableValue:
    printable = isinstance(raw, str) and raw.isprintable()
    return raw if isinstance(raw, str) and raw and printable else UnreadableValue()


MAIL_ADDRESS: SettingKind[str] = SettingKind(
    "mail address", "an e-mail address such as pool@example.com", _read_address, lambda value: value
)
SECRET: SettingKind[str] = SettingKind(
    "secret", "a text that can be printed", _read_secret, lambda value: value, mask=lambda _: MASK
)


@dataclass(frozen=True)
class MailSettings:
    """Letters to people. Without an SMTP server they go to an outbox, which `tidemill mail` reads."""

    pool_name: str = setting(TEXT, "Tidemill", meaning="What the pool calls itself in letters.")
    public_url: str | None = optional(
        WEB_URL,
        scope=SettingScope.PROCESS,
        meaning="Where links in letters lead; not set is the address the process listens on.",
    )
    sender: str | None = optional(
        MAIL_ADDRESS,
        scope=SettingScope.PROCESS,
        meaning="The address that letters come from; needed with `mail.smtp_host`.",
    )
    smtp_host: str | None = optional(
        HOST,
        scope=SettingScope.PROCESS,
        meaning="The SMTP server that takes our letters; not set keeps them in the outbox.",
    )
    smtp_port: int | None = optional(
        INTEGER,
        unit="port",
        low=1,
        high=65535,
        scope=SettingScope.PROCESS,
        meaning="Its port; not set is 587 with starttls, 465 with tls, 25 with none.",
    )
    smtp_tls: SmtpTls = setting(
        choice(SmtpTls),
        "starttls",
        scope=SettingScope.PROCESS,
        meaning="How the connection is guarded; the server's certificate is always checked.",
    )
    smtp_ca_file: Path | None = optional(
        PATH,
        scope=SettingScope.PROCESS,
        meaning="The certificates, in PEM, that the server's must come from; not set uses the system's.",
    )
    smtp_username: str | None = optional(
        TEXT, scope=SettingScope.PROCESS, meaning="The name to log in with; needs `mail.smtp_password`."
    )
    smtp_password: str | None = optional(SECRET, scope=SettingScope.PROCESS, meaning="The password to log in with.")
    smtp_plain_allowed: bool = setting(
        SWITCH,
        False,
        scope=SettingScope.PROCESS,
        meaning="Whether letters and the password may leave this machine without TLS.",
    )
    smtp_deadline_s: float = setting(
        DURATION,
        "30s",
        low="1s",
        high="10m",
        scope=SettingScope.PROCESS,
        meaning="How long connecting, or handing over one letter, may take.",
    )
    retry_first_s: float = setting(
        DURATION, "1m", low="100ms", high="24h", meaning="The wait before a letter is tried again; it doubles."
    )
    retry_most_s: float = setting(DURATION, "6h", low="100ms", high="7d", meaning="The longest wait between tries.")
    give_up_s: float = setting(
        DURATION, "3d", low="1s", high="30d", meaning="How long a letter is tried before it counts as failed."
    )
    keep_s: float = setting(
        DURATION, "30d", low="1h", high="3650d", meaning="How long it is known that a letter was written, and to whom."
    )
    outbox_keep_s: float = setting(
        DURATION, "7d", low="1m", high="366d", meaning="How long an unsent letter can be read, or tried again."
    )
