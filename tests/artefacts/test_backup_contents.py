"""The bytes of artefacts in backups: links and not copies, lists that are complete, and nothing that no list names."""

import hashlib
import os
from pathlib import Path

import pytest

from tidemill.artefacts import backup_contents
from tidemill.artefacts.backup_contents import (
    ListDraft,
    ListedContent,
    keeping,
    list_of,
    read_list,
    remove_unlisted,
    take,
)
from tidemill.artefacts.contents import all_contents, content_folder
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.faults import ArtefactFault, DiskFull


def kept(root: Path, *contents: bytes) -> list[ListedContent]:
    """Bytes in storage, as the database names them."""
    listed = []
    for content in contents:
        digest = Digest(hashlib.sha256(content).hexdigest())
        place = root.joinpath(*content_folder(digest))
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (place, place.parent, place.parent.parent):
            folder.chmod(0o700)
        (place / digest.text).write_bytes(content)
        listed.append(ListedContent(digest, len(content)))
    return sorted(listed)


def file_of(root: Path, listed: ListedContent) -> Path:
    return root.joinpath(*content_folder(listed.digest)) / listed.digest.text


def backed_up(folder: Path, name: str, storage: Path, listed: list[ListedContent]) -> backup_contents.TakenContents:
    dump = folder / name
    with keeping(folder) as target:
        taken = take(storage, target, listed, 0)
    draft = ListDraft(dump)
    draft.add(listed, 0)
    draft.add(listed, 1)
    draft.finish()
    draft.close()
    dump.write_text("a dump")
    return taken


def test_bytes_become_links_once_and_come_back(tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "backups"
    folder.mkdir()
    listed = kept(storage, b"one", b"two", b"three")
    taken = backed_up(folder, "a.dump", storage, listed)
    assert (taken.contents, taken.copied_bytes, taken.missing) == (3, 0, 0)
    for one in listed:
        assert file_of(folder / "artefacts", one).stat().st_ino == file_of(storage, one).stat().st_ino
    assert list(read_list(list_of(folder / "a.dump"))) == listed, "what two passes name is listed once"
    fresh = tmp_path / "fresh"
    fresh.mkdir(mode=0o700)
    with keeping(folder) as source:
        back = take(source, fresh, read_list(list_of(folder / "a.dump")), 0)
    assert (back.contents, back.missing) == (3, 0)
    assert [file_of(fresh, one).stat().st_size for one in listed] == [one.size_bytes for one in listed]


def test_on_another_disk_bytes_are_copied_once_and_never_onto_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "backups"
    folder.mkdir()
    listed = kept(storage, b"one", b"three")

    def other_disk(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    with keeping(folder) as target, pytest.raises(DiskFull):
        take(storage, target, listed, 2**62)
    assert backed_up(folder, "a.dump", storage, listed).copied_bytes == 8
    assert backed_up(folder, "b.dump", storage, listed).copied_bytes == 0


def test_what_is_missing_or_cut_is_counted_and_not_kept(tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "backups"
    folder.mkdir()
    listed = kept(storage, b"one", b"two", b"three")
    file_of(storage, listed[0]).unlink()
    file_of(storage, listed[1]).write_bytes(b"")
    taken = backed_up(folder, "a.dump", storage, listed)
    assert (taken.contents, taken.missing) == (1, 2)
    assert list(all_contents(folder / "artefacts")) == [listed[2].digest]


def test_retention_keeps_what_a_remaining_backup_names_and_removes_the_rest(tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "backups"
    folder.mkdir()
    old, both, new = (kept(storage, content)[0] for content in (b"old", b"both", b"new"))
    backed_up(folder, "a.dump", storage, sorted([old, both]))
    backed_up(folder, "b.dump", storage, sorted([both, new]))
    (file_of(folder / "artefacts", new).parent / ".rest.partial").write_bytes(b"of a killed copy")
    assert remove_unlisted(folder) == 0
    (folder / "a.dump").unlink()
    assert remove_unlisted(folder) == 2, "the list of the dump that went, and what only it named"
    assert set(all_contents(folder / "artefacts")) == {both.digest, new.digest}
    assert not list(folder.rglob("*.partial"))
    assert file_of(storage, old).exists(), "storage is not touched"


def test_a_damaged_list_removes_nothing_and_two_backups_at_once_are_refused(tmp_path: Path) -> None:
    storage, folder = tmp_path / "storage", tmp_path / "backups"
    folder.mkdir()
    listed = kept(storage, b"one")
    backed_up(folder, "a.dump", storage, listed)
    list_of(folder / "a.dump").write_text("nonsense\n")
    with pytest.raises(ArtefactFault, match="damaged in line 1"):
        remove_unlisted(folder)
    assert list(all_contents(folder / "artefacts")) == [listed[0].digest]
    with keeping(folder), pytest.raises(ArtefactFault, match="Another backup is being made"), keeping(folder):
        pass
