"""Random operations on two stores in one directory, beside a model that is a few dictionaries."""

import asyncio
import hashlib
import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.worlds.artefacts.artefact_stores import NOW, KnownSets, chunks, digest_of, files, get, ids
from tidemill.artefacts.local import LocalStore
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum
from tidemill.core.clock import Instant

PICK = st.integers(0, 9)
PART = st.binary(max_size=6)


class Stores(RuleBasedStateMachine):
    """The model: what each upload holds and may hold, which are finished, and when each content was last finished."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.root = Path(tempfile.mkdtemp(prefix="tm-model-"))
        self.stores = [LocalStore(self.root, 1, 0) for _ in range(2)]
        self.ids = ids()
        self.now = int(NOW)
        self.lengths: dict[UUID, int] = {}
        self.bytes: dict[UUID, bytes] = {}
        self.sealed: set[UUID] = set()
        self.contents: dict[Digest, tuple[bytes, int]] = {}

    def do(self, work):
        return self.loop.run_until_complete(work)

    def upload(self, pick: int) -> UUID:
        known = sorted(self.lengths)
        return known[pick % len(known)] if known else self.ids.new(Instant(self.now))

    @rule(length=st.integers(0, 12), which=st.integers(0, 1))
    def begin(self, length: int, which: int) -> None:
        self.now += 1_000
        upload_id = self.ids.new(Instant(self.now))
        self.do(self.stores[which].begin(upload_id, length))
        self.lengths[upload_id], self.bytes[upload_id] = length, b""

    @rule(pick=PICK, which=st.integers(0, 1), part=PART, off_by=st.sampled_from([0, 0, 0, 0, -1, 1]))
    def append(self, pick: int, which: int, part: bytes, off_by: int) -> None:
        self._append(pick, which, part, off_by, None)

    @rule(pick=PICK, which=st.integers(0, 1), part=PART, right=st.booleans())
    def append_with_a_checksum(self, pick: int, which: int, part: bytes, right: bool) -> None:
        value = hashlib.sha1(part if right else part + b"!").digest()
        self._append(pick, which, part, 0, Checksum("sha1", value))

    def _append(self, pick: int, which: int, part: bytes, off_by: int, checksum: Checksum | None) -> None:
        upload_id = self.upload(pick)
        held = self.bytes.get(upload_id)
        offset = len(held or b"") + off_by
        halves = chunks(part[: len(part) // 2], part[len(part) // 2 :])
        answer = self.do(self.stores[which].append(upload_id, offset, halves, checksum))
        if held is None:
            assert answer is UploadRefusal.UNKNOWN_UPLOAD
        elif off_by:
            assert answer is UploadRefusal.UPLOAD_OFFSET_WRONG
        elif len(held) + len(part) > self.lengths[upload_id]:
            assert answer is UploadRefusal.UPLOAD_BEYOND_LENGTH
        elif checksum and checksum.value != hashlib.sha1(part).digest():
            assert answer is UploadRefusal.UPLOAD_CHECKSUM_WRONG
        else:
            self.bytes[upload_id] = held + part
            assert answer == len(held) + len(part)

    @rule(pick=PICK, which=st.integers(0, 1), expects=st.sampled_from(["nothing", "right", "wrong"]))
    def finish(self, pick: int, which: int, expects: str) -> None:
        upload_id = self.upload(pick)
        held = self.bytes.get(upload_id)
        expected = {"nothing": None, "right": digest_of(held or b""), "wrong": digest_of(b"wrong")}[expects]
        answer = self.do(self.stores[which].finish(upload_id, expected, Instant(self.now)))
        if held is None:
            assert answer is UploadRefusal.UNKNOWN_UPLOAD
        elif len(held) < self.lengths[upload_id]:
            assert answer is UploadRefusal.UPLOAD_INCOMPLETE
        elif expects == "wrong":
            assert answer is UploadRefusal.UPLOAD_DIGEST_WRONG
        else:
            assert answer == digest_of(held)
            self.sealed.add(upload_id)
            self.contents[answer] = (held, self.now)

    @rule(pick=PICK, which=st.integers(0, 1))
    def abandon(self, pick: int, which: int) -> None:
        upload_id = self.upload(pick)
        self.do(self.stores[which].abandon(upload_id))
        self.lengths.pop(upload_id, None)
        self.bytes.pop(upload_id, None)
        self.sealed.discard(upload_id)

    @rule(pick=PICK, which=st.integers(0, 1), ago=st.integers(-1, 5_000))
    def delete(self, pick: int, which: int, ago: int) -> None:
        known = sorted(self.contents) or [digest_of(b"unknown")]
        digest = known[pick % len(known)]
        older_than = self.now - ago
        is_older = digest in self.contents and self.contents[digest][1] < older_than
        assert self.do(self.stores[which].delete(digest, Instant(older_than))) == is_older
        if is_older:
            del self.contents[digest]

    @rule(which=st.integers(0, 1), ago=st.integers(0, 9_000), spare=st.integers(1, 4))
    def sweep(self, which: int, ago: int, spare: int) -> None:
        older_than = (self.now - ago) // 1_000 * 1_000
        uploads, digests = sorted(self.lengths)[::spare], sorted(self.contents)[::spare]
        self.do(self.stores[which].sweep(Instant(older_than), KnownSets(uploads, digests)))
        for upload_id in set(self.lengths) - set(uploads):
            if (upload_id.int >> 80) * 1_000 < older_than:
                del self.lengths[upload_id], self.bytes[upload_id]
                self.sealed.discard(upload_id)
        for digest in set(self.contents) - set(digests):
            if self.contents[digest][1] < older_than:
                del self.contents[digest]

    @rule(pick=PICK, which=st.integers(0, 1), first=st.integers(-1, 13), size=st.integers(0, 13))
    def read(self, pick: int, which: int, first: int, size: int) -> None:
        known = sorted(self.contents)
        if not known:
            return
        content = self.contents[known[pick % len(known)]][0]
        if 0 <= first < len(content) and size:
            found = self.do(get(self.stores[which], digest_of(content), first, first + size))
            assert found == content[first : first + size]
        else:
            refused = self.do(self.stores[which].open(digest_of(content), first, first + size))
            assert refused is ArtefactRefusal.RANGE_NOT_THERE

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.do(self.stores[which].close())
        self.stores[which] = LocalStore(self.root, 1, 0)

    @invariant()
    def the_disk_holds_what_the_model_holds(self) -> None:
        expected = {
            f"content/{one.text[:2]}/{one.text[2:4]}/{one.text}": held for one, (held, _) in self.contents.items()
        }
        for upload_id, held in self.bytes.items():
            name = digest_of(held).text if upload_id in self.sealed else str(self.lengths[upload_id])
            expected[f"uploads/{upload_id}/{name}"] = held
        assert {name: (self.root / name).read_bytes() for name in files(self.root)} == expected

    def teardown(self) -> None:
        for store in self.stores:
            self.do(store.close())
        self.loop.close()
        shutil.rmtree(self.root)


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
