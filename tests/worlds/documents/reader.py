"""Somebody who follows a page in a demonstration, block by block, and says where the page is not true."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.tidy.source import ROOT
from tests.worlds.documents.expected_output import first_missing
from tests.worlds.documents.pages import COMMANDS, PRINTED, Block, blocks_of
from tests.worlds.documents.shell import COLUMNS, LINES, Said, Shell, prepared
from tests.worlds.pools.pool import Running, clean_environment, free_port

_POOL = re.compile(r"https://pool\.example(?:\.com)?|http://127\.0\.0\.1:8420")
_PORT = re.compile(r"(?<!\d)84(?:2[1-9]|43)(?!\d)")
"""Ports of further pools."""
_ASSIGNED = re.compile(r"^([A-Z]+)=", re.MULTILINE)
_FILE = re.compile(r"<([\w./-]+)>")


class Reader:
    """Has a clone of the project, a home of their own, and a shell."""

    def __init__(self, pool: Running, place: Path) -> None:
        self._pool = pool
        self._set: set[str] = set()
        self._ports: dict[str, str] = {}
        self._shell = Shell(_clone(place), _environment(pool, place))

    def follow(self, page: Path) -> Iterator[str]:
        """What is wrong with a page. The first command that fails ends the reading."""
        screen = ""
        for block in blocks_of(page):
            if block.mark == COMMANDS and not block.marker("skip"):
                said = self._run(block)
                screen = said.screen
                if said.wrong:
                    yield f"{page.name}:{block.line}: {said.wrong}\n{screen}"
                    return
            elif block.file:
                (self._shell.place / block.file).write_text(block.text, "utf-8")
            elif block.mark == PRINTED and (line := first_missing(self._here(block.text), screen)):
                yield f"{page.name}:{block.line}: this line was not printed: {line}\n{screen}"

    def ended(self) -> None:
        self._shell.ended()

    def _run(self, block: Block) -> Said:
        who = "".join(f"be {name}\n" for name in block.said("as"))
        return self._shell.run(who + self._here(prepared(block)), self._typed(block))

    def _typed(self, block: Block) -> Iterator[str]:
        """What is typed when the block asks. A file's name in <> stands for what is in it by then: one that the page
        has made, or one of the pool's home."""
        typed = block.marker("types")
        for line in typed.lines.splitlines() if typed else ():
            yield _FILE.sub(self._content, line)

    def _content(self, found: re.Match[str]) -> str:
        own = self._shell.place / found[1]
        return (own if own.exists() else self._pool.home / found[1]).read_text().strip()

    def _here(self, text: str) -> str:
        """Addresses of examples are this pool's, ports of further pools are free ones, and a word in capitals is what
        the page's first lines have set under that name."""
        self._set |= set(_ASSIGNED.findall(text))
        if self._set:
            text = re.sub(rf"(?<![\w${{-])({'|'.join(self._set)})(?![\w=])", r'"$\1"', text)
        text = _POOL.sub(self._pool.url, text)
        return _PORT.sub(lambda found: self._ports.setdefault(found[0], str(free_port())), text)


@contextmanager
def reading(pool: Running, place: Path) -> Iterator[Reader]:
    reader = Reader(pool, place)
    try:
        yield reader
    finally:
        reader.ended()


def _clone(place: Path) -> Path:
    """The project as in a clone, in which a page may leave files."""
    clone = place / "tidemill"
    clone.mkdir()
    for path in ROOT.iterdir():
        if path.name not in (".venv", ".git"):
            (clone / path.name).symlink_to(path)
    (clone / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return clone


def _environment(pool: Running, place: Path) -> Mapping[str, str]:
    """Nothing of ours is set but where the pool is; programs are where README puts them."""
    home = place / "home"
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "tidemill").symlink_to(pool.home)
    kept = clean_environment(pool.home, pool.port, {})
    programs = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    screen = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    left_out = [name for name in kept if name.startswith("XDG_")]
    said = str(pool.home / f"said-{pool.port}.txt")
    own = {"HOME": str(home), "TIDEMILL_AGENT_HOME": str(home / "agent"), "PATH": programs, "SAID": said, **screen}
    return {name: value for name, value in {**kept, **own}.items() if name not in left_out}
