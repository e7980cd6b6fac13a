"""Pages of help, of every command there is: in 80 columns, in plain words, with nothing cut."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tidemill.cli.command_examples import EXAMPLES
from tidemill.cli.command_table import COMMANDS, Section
from tidemill.cli.main import app, run
from tidemill.cli.terminal.help_page import help_page, summary_of

PYTHON = re.compile(r"\b(UUID|Path|str|int|float|bool|list\[|None|INTEGER)\b|<class|<\w+>|x[<>]=|\b_\w+")
"""What help says when nobody wrote it for people."""


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def pages() -> Iterator[tuple[str, Any, str]]:
    """Every command with its path and its page."""
    root = typer.main.get_command(app)
    yield from _below(root, typer.Context(root, info_name="tidemill", help_option_names=["-h", "--help"]))


def _below(command: Any, context: typer.Context) -> Iterator[tuple[str, Any, str]]:
    yield context.command_path, command, help_page(command, context)
    for name, below in getattr(command, "commands", {}).items():
        yield from _below(below, typer.Context(below, info_name=name, parent=context))


def test_no_page_is_wider_than_80_columns_and_none_speaks_python() -> None:
    wide, python = [], []
    for path, _, page in pages():
        prose = page.partition("\nExamples:\n")[0]
        wide += [f"{path}: {line}" for line in page.splitlines() if len(line) > 80]
        python += [f"{path}: {line}" for line in prose.splitlines() if PYTHON.search(line)]
    assert not wide
    assert not python


def test_every_command_says_what_it_does_and_what_each_parameter_means() -> None:
    silent = [path for path, command, _ in pages() if not summary_of(command)]
    silent += [f"{path} {one.name}" for path, command, _ in pages() for one in command.params if not one.help]
    assert not silent


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    commands: Any = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {name: entry.summary for name, entry in COMMANDS.items()} == {
        name: summary_of(command) for name, command in commands.items()
    }


def test_the_root_lists_all_commands_in_groups_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    page = capsys.readouterr().out
    for section in Section:
        assert f"\n{section.value}:\n" in page
    for entry in (one for one in COMMANDS.values() if not one.hidden):
        assert re.search(rf"^  {entry.name} +{re.escape(entry.summary)}$", page, re.MULTILINE), entry.name


@pytest.mark.parametrize("path", [[], ["jobs"], ["nodes", "tokens"], ["admin"]])
def test_a_group_alone_shows_its_page_or_lists_its_commands_for_programs(
    path: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(path) == 0
    assert capsys.readouterr().out.startswith(" ".join(["Usage: tidemill", *path]))
    assert run([*path, "--json"]) == 0
    commands = json.loads(capsys.readouterr().out)
    assert commands
    assert all(one["summary"] and one["command"].startswith(" ".join(["tidemill", *path])) for one in commands)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["job"], "'jobs'"),
        (["jobs", "lsit"], "'list'"),
        (["whoam"], "'whoami'"),
        (["submit"], "'tidemill jobs submit'"),
        (["jobs", "list", "--jsn"], "--json"),
        (["jobs", "list", "--limit", "many"], "'many' is not a whole number, such as 8."),
        (["jobs", "list", "--limit", "0"], "0 is not 1 to 10,000."),
        (["jobs", "list", "--state", "ready"], "'ready' is not one of draft, quoted"),
        (["audit", "show", "--limit", "2.5"], "'2.5' is not a whole number, such as 8."),
        (["ledger", "show", "x", "--at", "noon"], "'noon' is not a time, such as 2026-05-17"),
    ],
)
def test_what_is_mistyped_is_named_with_what_was_meant(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


def test_every_command_has_an_example_and_every_example_can_be_typed() -> None:
    commands = {path.partition(" ")[2]: command for path, command, _ in pages()}
    assert set(commands) == set(EXAMPLES)
    wrong = []
    for path, examples in EXAMPLES.items():
        assert examples, path
        for example in examples:
            words = shlex.split(
                example.partition(" > ")[0].partition(" < ")[0].partition(" | ")[0].partition(" >> ")[0]
            )
            below = max((one for one in commands if one and f"{example} ".startswith(f"{one} ")), key=len, default="?")
            known = {name for one in commands[below].params for name in (*one.opts, *one.secondary_opts)}
            given = {word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")}
            if not f"{below} ".startswith(f"{path} ".lstrip()) or given - known:
                wrong.append((path, example, sorted(given - known)))
    assert not wrong
