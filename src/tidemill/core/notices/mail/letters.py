"""The letters that the pool can write, and the parameters of each.

A letter brings exactly the parameters that its kind declares. A link is a path of the pool's own pages, so no letter
can lead anywhere else. Texts that strangers may have chosen (a device, a name, a reason) become one short line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType

from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address, parse_address
from tidemill.core.refusals import Refusal

TEXT_MAX = 200

LetterValue = str | int


class ParameterForm(Enum):
    """The form of a parameter, which decides how it is shown."""

    LINK = "a path of the pool, shown as a button"
    CODE = "a code to type in, shown large"
    TEXT = "one line of text"
    NUMBER = "a whole number"
    TIME = "an instant, shown in UTC"


class LetterKind(StrEnum):
    CONFIRM_ADDRESS = "confirm_address"
    ADDRESS_TAKEN = "address_taken"
    RESET_PASSWORD = "reset_password"  # noqa: S105  # the name of a letter
    NO_ACCOUNT = "no_account"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105  # the name of a letter
    CONFIRM_NEW_ADDRESS = "confirm_new_address"
    ADDRESS_CHANGED = "address_changed"
    SECOND_FACTOR_ON = "second_factor_on"
    SECOND_FACTOR_OFF = "second_factor_off"
    RECOVERY_CODE_USED = "recovery_code_used"
    NEW_LOGIN = "new_login"
    ACCOUNT_LOCKED = "account_locked"
    GUESSING = "guessing"
    KEY_MADE = "key_made"
    NODE_JOINED = "node_joined"
    ACCOUNT_BLOCKED = "account_blocked"
    ACCOUNT_UNBLOCKED = "account_unblocked"
    ACCOUNT_DELETED = "account_deleted"
    OPERATOR_MADE = "operator_made"
    STORAGE_UNPAID = "storage_unpaid"
    TEST = "test"


PARAMETERS: Mapping[LetterKind, Mapping[str, ParameterForm]] = {
    LetterKind.CONFIRM_ADDRESS: {"link": ParameterForm.LINK, "code": ParameterForm.CODE},
    LetterKind.ADDRESS_TAKEN: {"link": ParameterForm.LINK},
    LetterKind.RESET_PASSWORD: {"link": ParameterForm.LINK, "code": ParameterForm.CODE},
    LetterKind.NO_ACCOUNT: {},
    LetterKind.PASSWORD_CHANGED: {"at": ParameterForm.TIME, "link": ParameterForm.LINK},
    LetterKind.CONFIRM_NEW_ADDRESS: {"link": ParameterForm.LINK, "code": ParameterForm.CODE},
    LetterKind.ADDRESS_CHANGED: {
        "new_address": ParameterForm.TEXT,
        "at": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.SECOND_FACTOR_ON: {"at": ParameterForm.TIME},
    LetterKind.SECOND_FACTOR_OFF: {"at": ParameterForm.TIME, "link": ParameterForm.LINK},
    LetterKind.RECOVERY_CODE_USED: {"left": ParameterForm.NUMBER, "at": ParameterForm.TIME},
    LetterKind.NEW_LOGIN: {
        "device": ParameterForm.TEXT,
        "address": ParameterForm.TEXT,
        "at": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.ACCOUNT_LOCKED: {
        "tries": ParameterForm.NUMBER,
        "address": ParameterForm.TEXT,
        "until": ParameterForm.TIME,
    },
    LetterKind.GUESSING: {
        "tries": ParameterForm.NUMBER,
        "until": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.KEY_MADE: {
        "name": ParameterForm.TEXT,
        "prefix": ParameterForm.TEXT,
        "at": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.NODE_JOINED: {
        "node": ParameterForm.TEXT,
        "token": ParameterForm.TEXT,
        "address": ParameterForm.TEXT,
        "at": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.ACCOUNT_BLOCKED: {"reason": ParameterForm.TEXT},
    LetterKind.ACCOUNT_UNBLOCKED: {"link": ParameterForm.LINK},
    LetterKind.ACCOUNT_DELETED: {"at": ParameterForm.TIME},
    LetterKind.OPERATOR_MADE: {"link": ParameterForm.LINK},
    LetterKind.STORAGE_UNPAID: {
        "kept": ParameterForm.TEXT,
        "free": ParameterForm.TEXT,
        "until": ParameterForm.TIME,
        "link": ParameterForm.LINK,
    },
    LetterKind.TEST: {"at": ParameterForm.TIME},
}

ONCE_A_DAY = frozenset(
    {LetterKind.ADDRESS_TAKEN, LetterKind.NO_ACCOUNT, LetterKind.ACCOUNT_LOCKED, LetterKind.GUESSING}
)
"""Letters that any stranger can cause to be sent to anybody; nobody gets one more than once a day."""


class LetterRefusal(Refusal):
    UNKNOWN_LETTER = "There is no letter with this id: `tidemill mail` lists those there are."
    LETTER_UNDER_WAY = "This letter waits to be sent by itself, or was sent: only a failed one can be tried again."
    LETTER_EMPTIED = "This letter is no longer kept whole, so it cannot be sent: have a new one written."


@dataclass(frozen=True)
class Letter:
    """One letter to one mailbox. Its parameters are as declared, which is checked here."""

    kind: LetterKind
    recipient: str
    language: Language
    parameters: Mapping[str, LetterValue]

    def __post_init__(self) -> None:
        declared = PARAMETERS[self.kind]
        assert parse_address(self.recipient) == Address(self.recipient), "an address is checked before we write to it"
        assert self.parameters.keys() == declared.keys(), f"{self.kind} takes {sorted(declared)}"
        cleaned = {name: _cleaned(declared[name], value) for name, value in self.parameters.items()}
        object.__setattr__(self, "parameters", MappingProxyType(cleaned))


def is_understood(kind: str, parameters: Mapping[str, LetterValue]) -> bool:
    """Whether this version can write such a letter; a newer version may have left it in the database."""
    return kind in set(LetterKind) and PARAMETERS[LetterKind(kind)].keys() == parameters.keys()


def _cleaned(form: ParameterForm, value: LetterValue) -> LetterValue:
    if form in (ParameterForm.NUMBER, ParameterForm.TIME):
        assert isinstance(value, int), f"{form.value} is an integer"
        return value
    assert isinstance(value, str), f"{form.value} is a text"
    if form is ParameterForm.LINK:
        assert is_own_path(value), "a link is a path of the pool itself"
        return value
    return one_line(value)


def is_own_path(link: str) -> bool:
    """`//host` and `/\\host` would lead to another host."""
    visible = all("!" <= character <= "~" for character in link)
    return visible and link.startswith("/") and not link.startswith(("//", "/\\"))


def one_line(text: str) -> str:
    """Unprintable characters, line ends and changes of direction included, become spaces."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 1] + "…"
