"""Remarks for people on standard error, in text that cannot drive a terminal."""

import sys


def printable(text: str) -> str:
    """Escape whatever could drive a terminal. The text may come from an attacker."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def say(sentence: str) -> None:
    """Write a remark for people. It is never part of a result."""
    sys.stderr.write(printable(sentence) + "\n")
    sys.stderr.flush()
