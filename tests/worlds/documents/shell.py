"""A person's shell: bash on a terminal of 80 by 24, to which blocks of commands are given one after the other."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.worlds.documents.pages import Block

LINES, COLUMNS = 24, 80
BLOCK_S = 90.0
"""Bounds a failure only."""

_PRELUDE = r"""
set -eE
trap 'printf "line %s: %s\n" "$LINENO" "$BASH_COMMAND" >&4' ERR
background=()
until_ctrl_c() {
    local code=0
    timeout --preserve-status -s INT 2.5 env "$@" || code=$?
    [ $code = 0 ] || [ $code = 130 ]
}
goes_on() {
    aside="$PWD/aside-${#background[@]}.txt"
    env "$@" <&0 > "$aside" 2>&1 &
    background+=($!)
    until [ -s "$aside" ]; do sleep 0.05; done
}
be() {
    unset TIDEMILL_AS
    [ "$1" = reader ] || export TIDEMILL_AS=$1
}
fails() { ! "$@"; }
leave() {
    trap - ERR
    for one in "${background[@]}"; do kill "$one"; done
    wait
}
trap leave EXIT
while read -r block <&3; do
    source "$block"
    echo "done" >&4
done
"""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
_QUESTION = re.compile(r"[^\n]*[:?\]] $")


@dataclass(frozen=True)
class Said:
    """What a block printed, and what went wrong with it."""

    screen: str
    wrong: str = ""


class Shell:
    """One session. `ended` must be called, whatever happened."""

    def __init__(self, place: Path, environment: Mapping[str, str]) -> None:
        self.place = place
        self._blocks_out, blocks_in = os.pipe()
        answers_out, self._answers_in = os.pipe()
        self._commands, self._answers = blocks_in, answers_out
        self._process_id, self._terminal = pty.fork()
        if self._process_id == 0:
            self._become_shell(environment)
        os.close(self._blocks_out)
        os.close(self._answers_in)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._count = 0

    def run(self, commands: str, typed: Iterator[str]) -> Said:
        """Run lines to their end, and type what is asked for."""
        self._count += 1
        file = self.place / f".block-{self._count}.sh"
        file.write_text(commands, "utf-8")
        os.write(self._commands, f"{file}\n".encode())
        shown, answer = "", ""
        deadline = time.monotonic() + BLOCK_S
        while not answer and time.monotonic() < deadline:
            ready, _, _ = select.select([self._terminal, self._answers], [], [], 0.5)
            shown += self._read() if self._terminal in ready else ""
            is_asked = _QUESTION.search(shown) and not _more(self._terminal, 0.2)
            if is_asked and (line := next(typed, None)) is not None:
                os.write(self._terminal, f"{line}\n".encode())
                shown += "\n"
            if self._answers in ready:
                answer = os.read(self._answers, 4096).decode() or "the shell ended"
        while _more(self._terminal, 0.0) and (chunk := self._read()):
            shown += chunk
        wrong = "" if answer == "done\n" else answer or f"it took longer than {BLOCK_S:.0f} s"
        return Said(_as_seen(shown), wrong)

    def ended(self) -> None:
        """Let the shell end in order, with what went on in its background; then by force."""
        os.close(self._commands)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not os.waitpid(self._process_id, os.WNOHANG)[0]:
            if _more(self._terminal, 0.05):
                self._read()
        for number in (signal.SIGHUP, signal.SIGKILL):
            try:
                os.killpg(self._process_id, number)
            except ProcessLookupError:
                break
        os.close(self._terminal)
        os.close(self._answers)

    def _become_shell(self, environment: Mapping[str, str]) -> None:
        os.chdir(self.place)
        blocks, answers = (
            fcntl.fcntl(self._blocks_out, fcntl.F_DUPFD, 10),
            fcntl.fcntl(self._answers_in, fcntl.F_DUPFD, 10),
        )
        os.dup2(blocks, 3)
        os.dup2(answers, 4)
        os.closerange(5, 256)
        os.execve("/bin/bash", ["bash", "--noprofile", "--norc", "-c", _PRELUDE], dict(environment))

    def _read(self) -> str:
        try:
            return os.read(self._terminal, 65536).decode(errors="replace")
        except OSError:
            return ""  # everybody on the other side has left


def prepared(block: Block) -> str:
    """The lines to run for a block, as its markers say."""
    instead, first = block.marker("instead"), block.marker("first")
    lines = (instead.lines if instead else block.text).splitlines()
    for kind, function in (("until Ctrl-C", "until_ctrl_c"), ("goes on", "goes_on")):
        for beginning in block.said(kind):
            found = [number for number, line in enumerate(lines) if line.startswith(beginning)]
            assert len(found) == 1, f"line {block.line}: no line of the block begins with {beginning!r}"
            lines[found[0]] = f"{function} {lines[found[0]]}"
    if block.marker("fails"):
        lines[-1] = f"fails {lines[-1]}"
    return "\n".join([*(first.lines.splitlines() if first else ()), *lines, ""])


def _more(descriptor: int, within_s: float) -> bool:
    return bool(select.select([descriptor], [], [], within_s)[0])


def _as_seen(text: str) -> str:
    """Without what moves the cursor; of a line that was drawn again, the last drawing."""
    lines = _CONTROL.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
