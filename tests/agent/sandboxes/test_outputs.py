"""A hostile task leaves traps in its results."""

import os
from pathlib import Path, PurePosixPath

import pytest

from tests.worlds.sandboxes.sandbox_cell import PYTHON, Cell
from tidemill.agent.sandboxes.outputs import open_output, regular_files, remove_tree

TRAPS = """
import os, socket
open('result', 'w').write('good')
os.mkdir('inner'); open('inner/more', 'w').write('good')
os.symlink('/etc/shadow', 'link'); os.symlink('/', 'root'); os.symlink('inner', 'within')
os.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('socket')
os.mkdir('closed'); os.chmod('closed', 0)
open('line\\nbreak', 'w'); os.link('result', 'again')
"""


@pytest.mark.needs("bubblewrap", "python3")
async def test_only_regular_files_are_results_and_no_link_is_followed(cell: Cell) -> None:
    seen: list[str] = []

    async def collected(work: Path) -> None:
        seen.extend(str(path) for path in regular_files(work, 100))
        for trap in (
            "link",
            "root/etc/passwd",
            "within/more",
            "pipe",
            "socket",
            "inner",
            "../groups",
            "/etc/passwd",
            ".",
        ):
            with pytest.raises(OSError, match=r"."):
                open_output(work, PurePosixPath(trap))
        with os.fdopen(open_output(work, PurePosixPath("inner/more"))) as file:
            assert file.read() == "good"

    ran = await cell.run(cell.order(PYTHON, "-c", TRAPS), collected=collected)
    assert ran.outcome.succeeded, ran.errors
    assert seen == ["again", "inner/more", "line\nbreak", "result"]


def test_no_more_entries_are_looked_at_than_asked_for(tmp_path: Path) -> None:
    for name in range(50):
        (tmp_path / str(name)).touch()
    assert len(regular_files(tmp_path, 10)) == 10


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    tree, here = tmp_path / "tree", os.open(".", os.O_RDONLY)
    tree.mkdir()
    try:
        os.chdir(tree)
        for _ in range(3000):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
    finally:
        os.fchdir(here)
        os.close(here)
    remove_tree(tree)
    assert list(tmp_path.iterdir()) == []


def test_removing_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "tree")
    assert (tmp_path / "kept" / "file").exists()
