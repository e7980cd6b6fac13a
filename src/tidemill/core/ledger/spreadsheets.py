"""Text for a spreadsheet, which runs a cell that begins like a formula."""

_BEGIN_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the full-width forms of the first four."""


def harmless(text: str) -> str:
    """The text with an apostrophe before it, if a spreadsheet could take it for a formula. Not for numbers."""
    return f"'{text}" if text.startswith(_BEGIN_FORMULAS) else text
