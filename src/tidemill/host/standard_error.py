"""Remarks for people on standard error, in text that cannot drive a terminal."""

import os
import sys

from tidemill.host.terminal_text import wrapped

_USUAL_WIDTH = 80


def printable(text: str) -> str:
    """Escape whatever could drive a terminal. The text may come from an attacker."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def say(sentence: str) -> None:
    """Write a remark for people. It is never part of a result. On a terminal it wraps between words."""
    text = printable(sentence)
    lines = wrapped(text, _terminal_width()) if sys.stderr.isatty() else [text]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH
