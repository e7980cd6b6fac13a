"""Remarks for people on standard error, in text that cannot drive a terminal."""

import sys


def printable(text: str) -> str:
    """Text that cannot drive a terminal: whoever wrote it may not be our friend."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def say(sentence: str) -> None:
    """A remark for people, never part of a result."""
    sys.stderr.write(printable(sentence) + "\n")
    sys.stderr.flush()
