"""What documents and sentences say about the command is true, and what a test cannot run of them is counted.

`tests/system/test_documents.py` runs the pages themselves.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.tidy.source import ROOT, expect_none, modules
from tests.worlds.documents.expected_output import first_missing
from tests.worlds.documents.pages import COMMANDS, blocks_of, exceptions_of, unread_markers
from tidemill.cli.main import app

GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
"""Pages that tell a reader what to type."""
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]

EXCEPTIONS = {
    "README.md": 1,
    "accounts.md": 4,
    "add-a-loop.md": 1,
    "add-a-policy.md": 1,
    "add-a-runner.md": 1,
    "artefacts.md": 2,
    "deploy.md": 7,
    "join-a-machine.md": 4,
    "order-a-job.md": 4,
    "run-nodes.md": 2,
    "send-mail.md": 1,
    "verify-the-audit-trail.md": 1,
}
"""How many blocks of each page cannot run just as printed. One more is a decision: first look for a way to run it."""

COUNTED = ("skip", "first", "instead")

NO_COMMANDS = ("tidemill submit",)
"""What the source shows as a mistake that people make."""

_JOINED = re.compile(r"\"\s*\n\s*f?\"")
_CODE = re.compile(r"`(tidemill [^`\n]+)`")
_LINE = re.compile(r"(?:^|[|&($] ?)(?:sudo (?:-u \w+ )?)?(?:\w+=\S+ )*(?:\S*/)?(tidemill [^#\n]*)", re.MULTILINE)
_ENDS = re.compile(r" *(?:[|&;<>)]|…).*")


def spoken_commands(page: Path) -> Iterator[tuple[int, str]]:
    """Every call of the command on a page: in a sentence, or in a block to be typed."""
    text = page.read_text("utf-8")
    for found in _CODE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1]
    for block in blocks_of(page):
        if block.mark == COMMANDS:
            whole = block.text.replace("\\\n", " ")
            yield from ((block.line, found[1]) for found in _LINE.finditer(whole))


def what_is_unknown(command: str) -> str:
    """The first word that is neither a command nor an option of ours; "" if all are. `a|b` stands for both."""
    words = _words(command)
    places = [_root()]
    for word in words[1:]:
        if word == "--":
            break
        if word.startswith("-"):
            if word.partition("=")[0] not in _options(places):
                return word
        elif groups := [place for place in places if hasattr(place, "commands")]:
            found = [group.commands.get(name) for group in groups for name in word.split("|")]
            if all(found):
                places = [one for one in found if one]
            elif not any(place.invoke_without_command for place in groups):
                return word
        elif not all(place.context_settings.get("allow_interspersed_args", True) for place in places):
            break  # the rest is another command's
    return ""


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _options(places: list[Any]) -> set[str]:
    always = {"--help", "-h"}
    return always | {name for place in places for one in place.params for name in (*one.opts, *one.secondary_opts)}


def _words(command: str) -> list[str]:
    quoted = re.sub(r"(?<=\w)\|(?=\w)", "\0", command)
    ended = _ENDS.sub("", re.sub(r"\"[^\"]*\"|'[^']*'", "TEXT", quoted)).replace("\0", "|")
    words = shlex.split(ended)
    return [word for before, word in pairwise(["", *words]) if "--as" not in (before, word)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_commands_and_options_that_exist(page: Path) -> None:
    expect_none(
        (
            f"{page.relative_to(ROOT)}:{line}: {command}: there is no {word}"
            for line, command in spoken_commands(page)
            if (word := what_is_unknown(command))
        ),
        "`tidemill --help` says what there is.",
    )


def test_what_the_program_tells_people_to_type_exists() -> None:
    """Refusals and helps name commands, too; what is filled in is left out."""
    expect_none(
        (
            f"{module.path}: {found[1]}: there is no {word}"
            for module in modules()
            for found in _CODE.finditer(_JOINED.sub("", module.text))
            if found[1] not in NO_COMMANDS and (word := what_is_unknown(found[1].partition("{")[0]))
        ),
        "`tidemill --help` says what there is.",
    )


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_what_cannot_run_as_printed_is_counted_and_says_why(page: Path) -> None:
    expect_none(
        (
            f"{page.name}:{line}: no such marker, or it does not say why"
            for line in unread_markers(page.read_text("utf-8"))
        ),
        "tests/worlds/documents/pages.py says what a marker looks like; its reason has three words at least.",
    )
    found = [one for one in exceptions_of(page) if one.kind in COUNTED]
    lines = "\n".join(f"  {page.name}:{one.line}: {one.kind}: {one.said}" for one in found)
    assert len(found) == EXCEPTIONS.get(page.name, 0), f"The table EXCEPTIONS does not fit:\n{lines}"


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    """A block of commands without its mark would be taken for what is printed, and one in a list would be left out."""
    expect_none(
        (
            f"{page.name}:{block.line}"
            for block in blocks_of(page)
            if (block.mark != COMMANDS or block.indented)
            and re.search(r"^\s*(tidemill|curl|make) ", block.text, re.MULTILINE)
        ),
        "Mark the block `sh`, and begin it at the margin.",
    )


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("tidemill jobs list --json", ""),
        ("tidemill ledger accounts|show|check", ""),
        ("tidemill run matmul --m 2048 | head", ""),
        ("tidemill keys", ""),
        ("tidemill --as ada nodes list", ""),
        ("tidemill nodes …", ""),
        ("tidemill run script a.py -- --anything", ""),
        ("tidemill jobs lists", "lists"),
        ("tidemill jobs list --jsn", "--jsn"),
        ("tidemill ledger accounts|shows", "accounts|shows"),
        ("tidemill frobnicate", "frobnicate"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(command: str, unknown: str) -> None:
    assert what_is_unknown(command) == unknown


@pytest.mark.parametrize(
    "marker",
    [
        "<!-- run: skip -->",
        "<!-- run: skip: no -->",
        "<!-- run: jump: over this block here -->",
        "<!--run: skip: a b c-->",
    ],
)
def test_a_marker_that_says_nothing_is_noticed(marker: str) -> None:
    assert unread_markers(f"{marker}\n```sh\ntrue\n```\n") == [1]
    assert unread_markers("<!-- run: skip: needs a phone -->\n```sh\ntrue\n```\n") == []


@pytest.mark.parametrize(
    ("printed", "screen", "missing"),
    [
        ("node dan-1-core paid 0.2", "before\nnode ada-2-cores paid 7", None),
        ("done …", "done", None),
        ("done …", "done at last", None),
        ("sha a0c4… pass", "sha a0c497b2 pass", None),
        ("first\n…\nsecond", "first\nother\nsecond", None),
        ("second\nfirst", "first\nsecond", "first"),
        ("paid 0.2 credits", "paid many credits", "paid 0.2 credits"),
        ("done", "done at last", "done"),
    ],
)
def test_a_screen_is_compared_line_by_line(printed: str, screen: str, missing: str | None) -> None:
    assert first_missing(printed, screen) == missing
