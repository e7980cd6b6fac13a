"""Which agents the pool gives work. An agent says `tidemill/0.3.1`; only the numbers of a version are compared."""

import re

_AGENT = re.compile(r"tidemill/([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})(?![0-9])[0-9A-Za-z.+-]*", re.ASCII)
_OLDEST = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}", re.ASCII)
_PARTS = 4


def is_version(text: str) -> bool:
    """Whether a text is a version as the setting has it: `0.1`, or `1.2.3`."""
    return _OLDEST.fullmatch(text) is not None


def version_of(agent: str) -> str:
    """The version in an agent's name, as people read it; the full name, if it has none."""
    return agent.removeprefix("tidemill/")


def is_accepted(agent: str, oldest: str) -> bool:
    """Whether an agent is not older than the oldest that gets work. An unreadable version counts as older."""
    match = _AGENT.fullmatch(agent)
    return match is not None and _numbers(match[1]) >= _numbers(oldest)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".")]
    return tuple(numbers + [0] * (_PARTS - len(numbers)))
