"""What is in the project besides code: requirements without hosts, one version, the licence, no machine's paths."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source import ROOT, expect_none
from tidemill import __version__

APACHE_2_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

SETUP = ("pyproject.toml", "Makefile", "requirements", "scripts", ".ci")
CODE = ("src",)
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs")

URL = re.compile(r"https?://([\w.-]+\.\w+|localhost)", re.IGNORECASE)
REGISTRY = re.compile(
    r"https?://|--?(extra-)?index-url|--?find-links|\bpypi\.org|pythonhosted|registry\.npmjs", re.IGNORECASE
)
EXAMPLE_HOSTS = re.compile(r"127\.0\.0\.1|localhost|(.+\.)?example(\.(com|org|net))?", re.IGNORECASE)
SPEC_HOSTS = {
    "datatracker.ietf.org",
    "diataxis.fr",
    "keepachangelog.com",
    "semver.org",
    "spec.openapis.org",
    "swagger.io",
    "toml.io",
    "www.apache.org",
    "www.postgresql.org",
    "www.rfc-editor.org",
    "www.standardwebhooks.com",
    "www.w3.org",
}
"""Where prose may point: specifications, and the documentation of what we build on."""

MACHINE_PATH = re.compile(r"(?<![\w.}>~-])/(root|work|tmp|(home|Users)/(?!you/)[\w.-]+)/")
"""`/home/you/` stands for anybody's."""


def test_no_requirement_or_script_names_a_host() -> None:
    expect_none(
        _lines_with(REGISTRY, SETUP),
        "Whoever installs chooses the registry: name no host and no URL here.",
    )


def test_code_points_at_no_host_and_prose_only_at_specifications() -> None:
    def strange(path: Path, host: str) -> bool:
        known = path.parts[0] != "src" and host.lower() in SPEC_HOSTS
        return not known and not EXAMPLE_HOSTS.fullmatch(host)

    expect_none(
        (
            f"{path}:{number}: {match[0]}"
            for path, number, line in _lines((*CODE, *PROSE))
            for match in URL.finditer(line)
            if strange(path, match[1])
        ),
        "Examples use 127.0.0.1 or example.com; a specification's host is added to SPEC_HOSTS here.",
    )


@pytest.mark.parametrize("name", ["server.txt", "dev.txt"])
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    wrong = [
        f"requirements/{name}: {requirement.split()[0]}"
        for requirement in _requirements(name)
        if not re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", requirement) or "--hash=sha256:" not in requirement
    ]
    expect_none(wrong, "Pin with `make lock`, which writes a version and hashes for everything.")


def test_development_has_the_same_versions_as_the_server() -> None:
    """The platforms a requirement is for may differ, since more packages ask for it."""
    development = {one.split()[0] for one in _requirements("dev.txt")}
    expect_none(
        (one.split()[0] for one in _requirements("server.txt") if one.split()[0] not in development),
        "requirements/dev.txt must contain requirements/server.txt: run `make lock`.",
    )


def test_the_version_stands_in_one_place() -> None:
    version = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.]|\w)")
    places = ("src", "docs", "README.md", "pyproject.toml", "Makefile", "scripts", ".ci")
    found = [line for line in _lines_with(version, places) if not line.startswith("src/tidemill/__init__.py")]
    expect_none(found, "The version stands in src/tidemill/__init__.py only; everything else reads it from there.")


def test_the_licence_is_the_full_text_of_apache_2() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_SHA256


def test_scripts_can_be_run() -> None:
    expect_none(
        (
            str(file.relative_to(ROOT))
            for folder in ("scripts", ".ci")
            for file in (ROOT / folder).iterdir()
            if file.is_file() and not (file.suffix == ".py" or (os.access(file, os.X_OK) and _has_shebang(file)))
        ),
        "A script begins with #! and is executable: chmod +x.",
    )


def test_no_path_of_one_machine_is_written_down() -> None:
    expect_none(
        _lines_with(MACHINE_PATH, (*CODE, *PROSE, "scripts", "Makefile", ".ci", "pyproject.toml")),
        "Name a setting, a variable or a place that every machine has.",
    )


def test_every_link_between_pages_leads_somewhere() -> None:
    expect_none(
        (
            f"{path}:{number}: {target}"
            for path, number, line in _lines(PROSE)
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line)
            if "://" not in target and not (ROOT / path.parent / target).exists()
        ),
        "Links are relative to the page they stand on.",
    )


@pytest.mark.parametrize(
    "line", ["cd /root/pool", "see /home/anna/pool", "`/work/x`", "file:/tmp/x", "(/Users/anna/pool)"]
)
def test_a_machines_path_is_noticed(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["/var/lib/tidemill", "network/work/x", "$HOME/tmp/x", "/home", "~/tmp/", "/home/you/x"]
)
def test_a_path_that_every_machine_has_is_let_through(line: str) -> None:
    assert not MACHINE_PATH.search(line)


def _requirements(name: str) -> list[str]:
    """One requirement a line, continued lines joined."""
    text = (ROOT / "requirements" / name).read_text("utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) + " " for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _has_shebang(file: Path) -> bool:
    return file.read_bytes().startswith(b"#!")


def _lines_with(pattern: re.Pattern[str], places: tuple[str, ...]) -> Iterator[str]:
    for path, number, line in _lines(places):
        if match := pattern.search(line):
            yield f"{path}:{number}: {match[0]}"


def _lines(places: tuple[str, ...]) -> Iterator[tuple[Path, int, str]]:
    """Every line of the text files in these places that exist."""
    for place in places:
        top = ROOT / place
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                try:
                    text = file.read_text("utf-8")
                except UnicodeDecodeError:
                    continue  # a picture
                for number, line in enumerate(text.splitlines(), start=1):
                    yield file.relative_to(ROOT), number, line
