"""Which passwords are good enough: long, mixed, uncommon, and not the address itself.

A passphrase of sixteen characters needs no digit. There are no further rules: more rules make worse passwords.
"""

import unicodedata

from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.known_passwords import KNOWN_PASSWORDS
from tidemill.core.refusals import Refusal

PASSWORD_MIN = 8
PASSWORD_MAX = 256
_PASSPHRASE_MIN = 16


class PasswordRefusal(Refusal):
    PASSWORD_TOO_SHORT = f"The password is too short: use at least {PASSWORD_MIN} characters."
    PASSWORD_TOO_LONG = f"The password is too long: use at most {PASSWORD_MAX} characters."
    PASSWORD_TOO_SIMPLE = (
        f"The password is too simple: use letters and digits, or a passphrase of {_PASSPHRASE_MIN} characters."
    )
    PASSWORD_COMMON = "This password is among the most common ones: choose another."  # noqa: S105
    PASSWORD_IS_ADDRESS = "The password must not be your address or its name: choose another."  # noqa: S105


def checked_password(password: str, address: Address) -> str | PasswordRefusal:
    """The password as it is hashed, the same on every keyboard."""
    password = normal_password(password)
    if len(password) < PASSWORD_MIN:
        return PasswordRefusal.PASSWORD_TOO_SHORT
    if len(password) > PASSWORD_MAX:
        return PasswordRefusal.PASSWORD_TOO_LONG
    lowered = password.lower()
    if lowered in KNOWN_PASSWORDS:
        return PasswordRefusal.PASSWORD_COMMON
    if lowered.rstrip("0123456789!.?") in (address.key, address.key.partition("@")[0]):
        return PasswordRefusal.PASSWORD_IS_ADDRESS
    mixed = any(map(str.isalpha, password)) and any(map(str.isdigit, password))
    long_enough = len(password) >= _PASSPHRASE_MIN and len(set(password)) >= PASSWORD_MIN
    return password if mixed or long_enough else PasswordRefusal.PASSWORD_TOO_SIMPLE


def normal_password(password: str) -> str:
    """One form for all spellings that look the same, whichever keyboard wrote them."""
    return unicodedata.normalize("NFKC", password)
