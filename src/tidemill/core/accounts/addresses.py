"""E-mail addresses: what we accept, and when two of them are the same.

An address names one account, whatever the case of its letters. We refuse an address that could not be delivered to
or could be mistaken for another: the part before the @ is plain ASCII, a domain in another script becomes punycode.
"""

import re
from dataclasses import dataclass

from tidemill.core.refusals import Refusal

ADDRESS_MAX = 254
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class AddressRefusal(Refusal):
    ADDRESS_MALFORMED = "This is not an e-mail address: write it as name@example.com."


@dataclass(frozen=True)
class Address:
    """An address as its owner writes it; `key` is how two are compared."""

    text: str

    @property
    def key(self) -> str:
        return self.text.lower()

    @property
    def masked(self) -> str:
        """Enough for owners to recognise their own address, too little for others to learn it."""
        local, _, domain = self.text.partition("@")
        return f"{local[:1]}…@{domain}"


def parse_address(text: str) -> Address | AddressRefusal:
    local, at, domain = text.strip().rpartition("@")
    if not at or len(text) > ADDRESS_MAX or len(local) > 64 or not _LOCAL.fullmatch(local):
        return AddressRefusal.ADDRESS_MALFORMED
    ascii_domain = _in_ascii(domain.lower())
    labels = ascii_domain.split(".")
    if len(labels) < 2 or labels[-1].isdigit() or not all(_LABEL.fullmatch(label) for label in labels):
        return AddressRefusal.ADDRESS_MALFORMED
    return Address(f"{local}@{ascii_domain}")


def _in_ascii(domain: str) -> str:
    """A domain as mail servers know it; empty if it would become another domain, as ß becomes ss."""
    try:
        written = domain.encode("idna")
        return written.decode("ascii") if domain.isascii() or written.decode("idna") == domain else ""
    except UnicodeError:
        return ""
