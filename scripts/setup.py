"""Sets up .venv from the pinned, hashed requirements. Safe to repeat, to interrupt and to run twice at once.

Runs before anything is installed, so it uses the standard library only. A stamp remembers what was set up: when nothing
has changed, it returns at once.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SETS = ("server", "dev")  # each contains the one before


def main(wanted: str) -> None:
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if any(stamp(name).is_file() and stamp(name).read_text() == state(name) for name in SETS[SETS.index(wanted) :]):
            return
        if not usable():
            create()
        say(f"Installing what {'the pool' if wanted == 'server' else 'development'} needs; a minute, the first time …")
        install(ROOT / "requirements" / f"{wanted}.txt")
        pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        stamp(wanted).write_text(state(wanted))


def stamp(name: str) -> Path:
    return VENV / f".{name}-is-set-up"


def state(name: str) -> str:
    """Changes whenever the set-up must be done again: other pins, another place, another Python."""
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    for file in (ROOT / "requirements" / f"{name}.txt", ROOT / "pyproject.toml"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def usable() -> bool:
    """Whether .venv is there, whole, in its place, and made by this Python."""
    try:
        command = [PYTHON, "-c", "import pip, sys; print(sys.version, sys.prefix)"]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return False
    return found == f"{sys.version} {VENV}"


def create() -> None:
    say("Making .venv …")
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if made.returncode != 0 and os.geteuid() == 0 and shutil.which("apt-get"):
        say("This Python lacks venv: installing Debian's python3-venv …")
        with (ROOT / "scripts" / "system-packages").open() as other:  # which may run beside us
            fcntl.flock(other, fcntl.LOCK_EX)
            subprocess.run(["apt-get", "update", "-qq"], check=False)
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "python3-venv"], check=False)
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        words = " ".join((made.stdout + made.stderr).split())
        sys.exit(
            f"{sys.executable} cannot make a virtual environment; on Debian, install python3-venv. It said: {words}"
        )


def install(requirements: Path) -> None:
    """In two halves at once: pip unpacks and compiles on one processor, and pinned packages do not touch each other."""
    pinned = re.split(r"^(?=\S)", requirements.read_text(), flags=re.MULTILINE)
    halves = [VENV / f".{requirements.stem}-{number}.txt" for number in range(2)]
    for number, half in enumerate(halves):
        half.write_text("".join(pinned[number::2]))
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda half: pip("--no-deps", "--require-hashes", "-r", str(half)), halves))


def pip(*arguments: str) -> None:
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stderr.strip()}\nThe packages could not be installed: is the package index reachable?")


def say(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        say("Interrupted; run it again to go on.")
        sys.exit(130)
