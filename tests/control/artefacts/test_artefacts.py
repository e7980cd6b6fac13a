"""Artefacts of a real pool over real sockets: uploads that go on, downloads in parts, nodes, and who must not."""

import io
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx2
import psutil
import pytest
from tusclient.client import TusClient

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, Machine, People, people_of
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tests.worlds.pools.tus import BYTES, UPLOADS, VERSION, Client, checksum, digest_of, fed_steadily, problem
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.grants import Access, Grant
from tidemill.core.clock import SECOND, Instant
from tidemill.store.artefacts import artefact_grants

MIB = 1024 * 1024
SETTINGS = {
    **MANY,
    "TIDEMILL_ARTEFACTS_QUOTA_BYTES": "400MiB",
    "TIDEMILL_ARTEFACTS_FREE_BYTES": "400MiB",
    "TIDEMILL_HTTP_BODY_DEADLINE_S": "3s",
}
TEXT = b"water that would have flowed away" * 100


class Here:
    """A pool and its people."""

    def __init__(self, pool: Pool, running: Running, people: People) -> None:
        self.pool, self.running, self.people = pool, running, people

    def client(self, *scopes: Scope) -> Client:
        """Somebody new."""
        person = self.people.person()
        if scopes:
            return Client(self.running, self.people.key(person, Role.CUSTOMER, *scopes).bearer)
        return Client(self.running, self.people.session(person).bearer)

    def operator(self) -> Client:
        person = self.people.person(Role.OPERATOR, second_factor=True)
        return Client(self.running, self.people.session(person).bearer)

    def machine(self) -> Machine:
        return self.people.machine(self.people.person(Role.PROVIDER))

    def give(self, machine: Machine, account: UUID, digest: str | None = None, lasting_s: float = 600) -> UUID:
        """An attempt of this machine needs a digest, or may upload its result."""

        async def given() -> UUID:
            async with self.people.database.connection() as connection:
                now = await self.people.now(connection)
                attempt_id, until = self.people.ids.new(now), Instant(now + int(lasting_s * SECOND))
                access = Access.READ if digest else Access.WRITE
                found = Digest(digest) if digest else None
                grant = Grant(attempt_id, machine.id, account, access, 10 * MIB, until, found)
                await artefact_grants.give(connection, [grant])
                return attempt_id

        return self.people.run(given())


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            yield Here(pool, running, people)
        assert '"bug"' not in running.said()


def owner_of(client: Client) -> UUID:
    return UUID(client.ask("GET", "/api/v1/account").json()["account"]["id"])


def test_what_is_uploaded_in_parts_is_there_whole(here: Here) -> None:
    client = here.client()
    path = client.begun(len(TEXT), name="tide.txt", sha256=digest_of(TEXT))
    first = client.add(path, 0, TEXT[:1000], **checksum(TEXT[:1000]))
    assert (first.status_code, first.headers["upload-offset"]) == (204, "1000")
    stands = client.look(path)
    assert (stands.headers["upload-offset"], stands.headers["upload-length"]) == ("1000", str(len(TEXT)))
    assert stands.headers["cache-control"] == "no-store"
    assert stands.headers["upload-expires"].endswith("GMT")
    last = client.add(path, 1000, TEXT[1000:], **checksum(TEXT[1000:], "sha256"))
    artefact_id = UUID(last.headers["tidemill-artefact"])
    assert client.look(path).headers["tidemill-artefact"] == str(artefact_id), "for who missed the answer"
    shown = client.ask("GET", f"/api/v1/artefacts/{artefact_id}").json()
    assert (shown["digest"], shown["size_bytes"], shown["purpose"]) == (digest_of(TEXT), len(TEXT), "input")
    assert client.content(artefact_id).content == TEXT
    assert [one["id"] for one in client.ask("GET", "/api/v1/artefacts").json()["items"]] == [str(artefact_id)]


def test_an_empty_artefact_and_one_that_comes_with_its_beginning(here: Here) -> None:
    client = here.client()
    empty = client.begin(0)
    assert client.content(UUID(empty.headers["tidemill-artefact"])).content == b""
    whole = client.put(TEXT)
    assert client.content(whole).content == TEXT
    part = client.begin(len(TEXT), TEXT[:10], BYTES)
    assert (part.headers["upload-offset"], "tidemill-artefact" in part.headers) == ("10", False)


def test_what_of_tus_is_understood_is_told_to_anybody(here: Here) -> None:
    answer = Client(here.running, {}).ask("OPTIONS", UPLOADS)
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
    assert set(answer.headers["tus-extension"].split(",")) == {
        "creation",
        "creation-with-upload",
        "checksum",
        "expiration",
        "termination",
    }
    assert answer.headers["tus-checksum-algorithm"] == "sha1,sha256"


def test_a_foreign_client_of_tus_works_as_it_is(here: Here) -> None:
    client = here.client(Scope.ARTEFACTS_READ, Scope.ARTEFACTS_WRITE)
    content = os.urandom(700_000)
    foreign = TusClient(here.running.url + UPLOADS, headers=client.shown)
    uploader = foreign.uploader(
        file_stream=io.BytesIO(content), chunk_size=100_000, metadata={"filename": "foreign.bin"}, upload_checksum=True
    )
    uploader.upload_chunk()
    again = foreign.uploader(file_stream=io.BytesIO(content), chunk_size=300_000, url=uploader.url)
    again.offset = again.get_offset()
    assert again.offset == 100_000
    again.upload()
    (made,) = client.ask("GET", "/api/v1/artefacts").json()["items"]
    assert (made["name"], made["digest"]) == ("foreign.bin", digest_of(content))


def test_a_part_with_a_wrong_checksum_is_dropped_and_one_with_a_strange_checksum_refused(here: Here) -> None:
    client = here.client()
    path = client.begun(len(TEXT))
    wrong = client.add(path, 0, TEXT, **checksum(TEXT + b"x"))
    assert (wrong.status_code, problem(wrong)) == (460, "upload_checksum_wrong")
    assert client.look(path).headers["upload-offset"] == "0"
    strange = client.add(path, 0, TEXT, **{"Upload-Checksum": "md5 AAAA"})
    assert (strange.status_code, problem(strange)) == (400, "upload_checksum_malformed")


def test_a_whole_with_another_digest_than_expected_becomes_nothing(here: Here) -> None:
    client = here.client()
    path = client.begun(len(TEXT), sha256=digest_of(b"something else"))
    wrong = client.add(path, 0, TEXT)
    assert (wrong.status_code, problem(wrong)) == (422, "upload_digest_wrong")
    assert client.look(path).status_code == 404
    assert client.ask("GET", "/api/v1/artefacts").json()["items"] == []
    assert client.begin(400 * MIB).status_code == 201, "its room is free again"


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412, "tus_version_wrong"),
        ({"Upload-Length": "-1"}, 400, "upload_length_malformed"),
        ({"Upload-Length": "many"}, 400, "upload_length_malformed"),
        ({"Upload-Length": "9" * 30}, 400, "upload_length_malformed"),
        ({"Upload-Length": str(10**15)}, 413, "artefact_too_large"),
        ({"Upload-Metadata": "name"}, 422, "artefact_name_malformed"),
        ({"Upload-Metadata": "name !!!"}, 400, "upload_metadata_malformed"),
        ({"Upload-Metadata": "name YQ==,name YQ=="}, 400, "upload_metadata_malformed"),
        ({"Upload-Metadata": "name YQ==,purpose cmVzdWx0"}, 400, "upload_metadata_malformed"),
        ({"Upload-Metadata": "name Li4vZXRj"}, 422, "artefact_name_malformed"),
        ({"Upload-Metadata": "name YQ==,sha256 YQ=="}, 422, "digest_malformed"),
    ],
)
def test_an_upload_that_cannot_be_begun_is_refused(here: Here, changed: dict[str, str], status: int, code: str) -> None:
    answer = here.client().begin(5, headers=changed)
    assert (answer.status_code, problem(answer)) == (status, code)
    assert answer.headers["tus-resumable"] == "1.0.0"


def test_a_part_that_does_not_fit_is_refused_and_changes_nothing(here: Here) -> None:
    client = here.client()
    path = client.begun(100)
    tries = [
        (client.add(path, 7, b"x"), 409),
        (client.add(path, "here", b"x"), 400),
        (client.add(path, 0, b"x" * 101), 413),
        (client.add(path, 0, iter([b"x" * 60, b"x" * 60])), 413),
        (client.add(path, 0, b"x", **{"Content-Type": "text/plain"}), 415),
        (client.ask("PATCH", path, content=b"x", headers={**BYTES, "Upload-Offset": "0"}), 412),
        (client.add(f"{UPLOADS}/{UUID(int=1)}", 0, b"x"), 404),
    ]
    assert [answer.status_code for answer, _ in tries] == [status for _, status in tries]
    assert client.look(path).headers["upload-offset"] == "0"


def test_the_quota_counts_what_is_under_way_and_says_its_figures(here: Here) -> None:
    client = here.client()
    path = client.begun(300 * MIB)
    refused = client.begin(101 * MIB)
    assert (refused.status_code, problem(refused)) == (409, "artefact_quota_reached")
    assert str(300 * MIB) in refused.json()["detail"]
    assert client.ask("DELETE", path, headers=VERSION).status_code == 204
    assert client.look(path).status_code == 404
    assert client.begin(101 * MIB).status_code == 201


def test_somebody_elses_upload_and_artefact_are_missing_ones(here: Here) -> None:
    owner, other = here.client(), here.client()
    path, artefact_id = owner.begun(10), owner.put(TEXT)
    asked = [
        (other.look(path), other.look(f"{UPLOADS}/{UUID(int=1)}")),
        (other.add(path, 0, b"x"), other.add(f"{UPLOADS}/{UUID(int=1)}", 0, b"x")),
        (other.content(artefact_id), other.content(UUID(int=1))),
        (
            other.ask("DELETE", f"/api/v1/artefacts/{artefact_id}"),
            other.ask("DELETE", f"/api/v1/artefacts/{UUID(int=1)}"),
        ),
    ]
    for foreign, missing in asked:
        assert foreign.status_code == missing.status_code == 404
        assert foreign.headers["tidemill-problem"] == missing.headers["tidemill-problem"]
    assert owner.content(artefact_id).status_code == 200


def test_an_operator_reads_and_deletes_with_a_reason(here: Here) -> None:
    owner, operator = here.client(), here.operator()
    artefact_id = owner.put(TEXT)
    path = f"/api/v1/artefacts/{artefact_id}"
    assert operator.content(artefact_id).content == TEXT
    assert problem(operator.ask("DELETE", path)) == "reason_missing"
    assert operator.ask("DELETE", f"{path}?reason=copyright").status_code == 200
    assert owner.content(artefact_id).status_code == 404
    acts = [act for act in here.running.events() if act["subject"] == f"artefact:{artefact_id}"]
    assert [act["kind"] for act in acts] == ["artefact.made", "artefact.removed"]


@pytest.mark.parametrize(
    ("wish", "status", "found"),
    [
        ("bytes=0-9", 206, TEXT[:10]),
        ("bytes=3290-", 206, TEXT[3290:]),
        ("bytes=-5", 206, TEXT[-5:]),
        ("bytes=-999999", 206, TEXT),
        ("bytes=5-99999", 206, TEXT[5:]),
        ("bytes=0-1,4-5", 200, TEXT),
        ("bytes=9-3", 200, TEXT),
        ("lines=1-2", 200, TEXT),
        ("bytes=-", 200, TEXT),
        ("bytes=3300-", 416, None),
        ("bytes=-0", 416, None),
    ],
)
def test_a_range_is_answered_as_it_is_asked(here: Here, wish: str, status: int, found: bytes | None) -> None:
    client = here.client()
    answer = client.content(client.put(TEXT), Range=wish)
    assert answer.status_code == status
    if found is None:
        assert answer.headers["content-range"] == f"bytes */{len(TEXT)}"
    else:
        assert answer.content == found
        assert answer.headers["content-length"] == str(len(found))


def test_a_download_goes_on_only_with_the_same_bytes_and_is_never_run_by_a_browser(here: Here) -> None:
    client = here.client()
    artefact_id = client.put(TEXT, name='ta"ble; x=1 ночь.html')
    whole = client.content(artefact_id)
    tag = whole.headers["etag"]
    assert tag == f'"{digest_of(TEXT)}"'
    assert client.content(artefact_id, Range="bytes=9-", **{"If-Range": tag}).status_code == 206
    assert client.content(artefact_id, Range="bytes=9-", **{"If-Range": '"else"'}).status_code == 200
    assert client.content(artefact_id, **{"If-None-Match": f'"x", {tag}'}).status_code == 304
    head = client.ask("HEAD", f"/api/v1/artefacts/{artefact_id}/content")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(TEXT)))
    disposition = whole.headers["content-disposition"]
    assert disposition.startswith('attach; filename="ta_ble; x=1 ____.html"; filename*=UTF-8')
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in whole.headers["content-security-policy"]


def test_a_node_reads_only_what_an_attempt_of_its_own_needs(here: Here) -> None:
    owner, machine = here.client(), here.machine()
    owner.put(TEXT)
    digest, other = digest_of(TEXT), Client(here.running, here.machine().shown())
    node = Client(here.running, machine.shown())
    before, guessed = node.by_digest(digest), node.by_digest(digest_of(b"no such bytes"))
    assert (before.status_code, problem(before)) == (guessed.status_code, problem(guessed)) == (404, "unknown_artefact")
    here.give(machine, owner_of(owner), digest)
    assert node.by_digest(digest).content == TEXT
    assert node.by_digest(digest, Range="bytes=5-8").content == TEXT[5:9]
    assert node.by_digest(digest, "HEAD").headers["content-length"] == str(len(TEXT))
    assert other.by_digest(digest).status_code == 404
    here.give(machine, owner_of(owner), digest_of(b"granted and missing"))
    missing = node.by_digest(digest_of(b"granted and missing"))
    assert missing.json()["detail"] == before.json()["detail"]
    assert problem(node.by_digest("0" * 63)) == "digest_malformed"


def test_a_grant_that_is_over_gives_nothing(here: Here) -> None:
    owner, machine = here.client(), here.machine()
    owner.put(TEXT)
    here.give(machine, owner_of(owner), digest_of(TEXT), lasting_s=-1)
    assert Client(here.running, machine.shown()).by_digest(digest_of(TEXT)).status_code == 404


def test_a_node_uploads_a_result_which_is_the_customers(here: Here) -> None:
    owner, machine = here.client(), here.machine()
    node = Client(here.running, machine.shown())
    assert problem(node.begin(5, attempt=str(UUID(int=1)))) == "upload_not_granted"
    attempt = str(here.give(machine, owner_of(owner)))
    assert problem(node.begin(5)) == "upload_metadata_malformed"
    assert problem(node.begin(11 * MIB, attempt=attempt)) == "artefact_too_large"
    assert problem(Client(here.running, here.machine().shown()).begin(5, attempt=attempt)) == "upload_not_granted"
    lost = node.begun(len(TEXT), attempt=attempt)
    path = node.begun(len(TEXT), attempt=attempt)
    assert node.look(lost).status_code == 404, "an attempt has one upload"
    assert owner.look(path).status_code == 404, "its owner may not write to it"
    done = node.add(path, 0, TEXT)
    assert done.status_code == 204
    assert problem(node.begin(5, attempt=attempt)) == "upload_not_granted"
    (kept,) = owner.ask("GET", "/api/v1/artefacts?purpose=result").json()["items"]
    assert (kept["attempt_id"], kept["digest"]) == (attempt, digest_of(TEXT))
    assert owner.content(UUID(kept["id"])).content == TEXT
    assert problem(node.content(UUID(kept["id"]))) == "not_for_nodes"


def test_a_pass_is_worth_nothing_when_its_time_is_over_or_too_long(here: Here) -> None:
    machine = here.machine()
    short = Client(here.running, machine.shown(lasting_s=2))
    assert problem(short.by_digest("0" * 64)) == "unknown_artefact"
    time.sleep(2.5)
    assert (short.by_digest("0" * 64).status_code, problem(short.by_digest("0" * 64))) == (401, "pass_over")
    assert problem(Client(here.running, machine.shown(lasting_s=660)).by_digest("0" * 64)) == "pass_too_long"
    as_token = {"Authorization": machine.shown()["Authorization"].replace("Node", "Bearer")}
    assert problem(Client(here.running, as_token).by_digest("0" * 64)) == "token_unknown"
    key = here.client(Scope.ARTEFACTS_READ).shown["Authorization"].replace("Bearer", "Node")
    assert problem(Client(here.running, {"Authorization": key}).by_digest("0" * 64)) == "pass_malformed"


def test_a_removed_node_and_one_of_a_blocked_owner_are_refused_at_once(here: Here) -> None:
    owner = here.people.person(Role.PROVIDER)
    removed, other = here.people.machine(owner), here.people.machine(owner)
    shown, others = Client(here.running, removed.shown()), Client(here.running, other.shown())
    assert problem(shown.by_digest("0" * 64)) == problem(others.by_digest("0" * 64)) == "unknown_artefact"
    gone = here.running.delete(f"/api/v1/nodes/{removed.id}?reason=test", headers=here.running.operator)
    assert gone.status_code == 200, gone.text
    assert problem(shown.by_digest("0" * 64)) == "node_removed"
    blocked = here.operator().ask("POST", f"/api/v1/admin/accounts/{owner.id}/block", json={"reason": "a test"})
    assert blocked.status_code == 200, blocked.text
    assert problem(others.by_digest("0" * 64)) == "account_blocked"


def test_a_broken_connection_keeps_what_came_unless_it_had_a_checksum(here: Here) -> None:
    client = here.client()
    content = os.urandom(3 * MIB)
    path = client.begun(len(content))
    with client.half_sent(path, len(content), content[:MIB], **checksum(content)) as sending, fed_steadily(sending):
        until(lambda: client.add(path, 1, b"x").status_code == 423, "it is being added to")
    until(lambda: client.add(path, 1, b"x").status_code == 409, "it let go")
    assert client.look(path).headers["upload-offset"] == "0", "it had a checksum"
    client.half_sent(path, len(content), content[: 2 * MIB]).close()
    until(lambda: client.look(path).headers["upload-offset"] == str(2 * MIB), "what came is kept")
    assert client.add(path, 2 * MIB, content[2 * MIB :]).status_code == 204


def test_a_small_part_that_breaks_off_is_kept_to_its_last_byte(here: Here) -> None:
    client = here.client()
    content = os.urandom(500_000)
    path, at = client.begun(len(content)), 0
    for came in (1, 65_537, 123_456):
        announced = len(content) - at
        client.half_sent(path, announced, content[at : at + came], **{"Upload-Offset": str(at)}).close()
        at += came
        until(lambda stands_at=str(at): client.look(path).headers["upload-offset"] == stands_at, "what came is kept")
    done = client.add(path, at, content[at:])
    assert client.content(UUID(done.headers["tidemill-artefact"])).content == content


def test_an_upload_that_is_ended_while_bytes_come_is_gone_and_so_are_they(here: Here) -> None:
    client = here.client()
    path = client.begun(10 * MIB)
    with client.half_sent(path, 10 * MIB, bytes(3 * MIB)) as sending, fed_steadily(sending):
        until(lambda: client.look(path).headers["upload-offset"] != "0", "it is being added to")
        assert client.ask("DELETE", path, headers=VERSION).status_code == 204
    assert client.look(path).status_code == 404
    again = client.begun(10 * MIB)
    with client.half_sent(again, 10 * MIB, bytes(10 * MIB - 1)) as sending:
        assert client.ask("DELETE", again, headers=VERSION).status_code == 204
        sending.sendall(b"x")
        assert sending.recv(1000).startswith(b"HTTP/1.1 404 ")
    assert client.ask("GET", "/api/v1/artefacts").json()["items"] == []


def test_a_second_request_for_an_upload_that_is_busy_is_told_so(here: Here) -> None:
    client = here.client()
    path = client.begun(10 * MIB)
    with client.half_sent(path, 10 * MIB, bytes(3 * MIB)) as sending, fed_steadily(sending) as sent:
        until(lambda: client.look(path).headers["upload-offset"] != "0", "it is being added to")
        assert client.add(path, 1, b"x").status_code == 423
    all_sent = str(3 * MIB + sum(sent))
    until(lambda: client.look(path).headers["upload-offset"] == all_sent, "it let go, and what came is kept")


def test_whoever_sends_nothing_for_long_is_cut_off_and_a_steady_sender_is_not(here: Here) -> None:
    client = here.client()
    path = client.begun(100_000)
    with client.half_sent(path, 100_000, b"x" * 10) as idle:
        started = time.monotonic()
        assert idle.recv(1000) == b""
        assert 2 < time.monotonic() - started < 10
    until(lambda: client.look(path).headers["upload-offset"] == "10", "what came is kept")
    steady = client.begun(60_000)
    with client.half_sent(steady, 60_000, b"") as sending:
        for _ in range(12):
            sending.sendall(b"x" * 5000)
            time.sleep(0.5)
        assert b" 204 " in sending.recv(1000), "six seconds, twice as long as any other body may take"


def test_only_uploads_may_have_large_bodies(here: Here) -> None:
    client = here.client()
    for method, path in [("POST", "/api/v1/models"), ("PUT", f"{UPLOADS}/{UUID(int=1)}"), ("POST", f"{UPLOADS}/x")]:
        answer = client.ask(method, path, content=bytes(2 * MIB), headers=VERSION)
        assert answer.status_code in (403, 405, 413), path
    assert here.operator().ask("POST", "/api/v1/models", content=bytes(2 * MIB)).status_code == 413


def test_models_are_added_by_operators_and_seen_by_everybody(here: Here) -> None:
    operator, customer = here.operator(), here.client(Scope.ARTEFACTS_READ)
    weights = str(operator.put(b"weights", name="tiny.safetensors", purpose="model"))
    asked = {"name": "tiny-1", "source": "our own", "licence": "MIT", "artefact_id": weights, "gpu_memory_mib": 2000}
    assert problem(customer.ask("POST", "/api/v1/models", json=asked)) == "operator_only"
    assert operator.ask("POST", "/api/v1/models", json=asked).status_code == 201
    assert problem(operator.ask("POST", "/api/v1/models", json=asked)) == "model_name_taken"
    assert problem(operator.ask("DELETE", f"/api/v1/artefacts/{weights}")) == "artefact_in_use"
    (seen,) = customer.ask("GET", "/api/v1/models").json()["items"]
    assert (seen["digest"], seen["gpu_memory_mib"]) == (digest_of(b"weights"), 2000)
    assert customer.ask("GET", "/api/v1/models/TINY-1").json() == seen
    assert problem(customer.ask("GET", "/api/v1/models/else")) == "unknown_model"
    assert operator.ask("DELETE", "/api/v1/models/tiny-1").status_code == 200
    assert operator.ask("DELETE", f"/api/v1/artefacts/{weights}").status_code == 200


def test_a_large_upload_costs_no_memory(here: Here) -> None:
    client, process = here.client(), psutil.Process(here.running.process.pid)
    piece = os.urandom(MIB)
    client.put(piece)
    processes = [process, *(child for child in process.children(recursive=True) if "python" in child.name())]
    before, most = sum(one.memory_info().rss for one in processes), 0

    def pieces() -> Iterator[bytes]:
        nonlocal most
        for place in range(300):
            if place % 10 == 0:
                most = max(most, sum(one.memory_info().rss for one in processes))
            yield piece

    path = client.begun(300 * MIB)
    done = client.add(path, 0, pieces())
    assert done.status_code == 204, done.text
    assert most - before < 30 * MIB, f"grew by {(most - before) / MIB:.0f} MiB"
    artefact_id = done.headers["tidemill-artefact"]
    url = f"{here.running.url}/api/v1/artefacts/{artefact_id}/content"
    with httpx2.stream("GET", url, headers=client.shown, timeout=60) as reading:
        assert sum(map(len, reading.iter_bytes())) == 300 * MIB
    grown = sum(one.memory_info().rss for one in processes) - before
    assert grown < 30 * MIB, f"grew by {grown / MIB:.0f} MiB"


def test_an_upload_goes_on_after_the_process_was_killed(place: Path) -> None:
    with pool_in(place, **SETTINGS) as pool:
        up = pool.up()
        up.set_up()
        with people_of(up) as people:
            second = pool.control()
            second.until_ready()
            shown = people.session(people.person()).bearer
            client, content = Client(second, shown), os.urandom(8 * MIB)
            path = client.begun(len(content), sha256=digest_of(content))
            sending = client.half_sent(path, len(content), content[: 5 * MIB])
            until(lambda: int(client.look(path).headers["upload-offset"]) >= 4 * MIB, "most of it was taken")
            second.end(signal.SIGKILL)
            sending.close()
            client = Client(up, shown)
            stands_at = int(client.look(path).headers["upload-offset"])
            assert 4 * MIB <= stands_at <= 5 * MIB
            done = client.add(path, stands_at, content[stands_at:])
            assert client.content(UUID(done.headers["tidemill-artefact"])).content == content


ONE_BYTE = {**VERSION, "Upload-Length": "1"}


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/api/v1/models/%00", {}),
        ("GET", "/api/v1/models/a%00b", {}),
        ("GET", "/api/v1/models?after=%00", {}),
        ("GET", "/api/v1/models/%ff%fe", {}),
        ("GET", "/api/v1/artefacts?digest=%00", {}),
        ("GET", "/api/v1/artefacts/by-digest/%00/content", {}),
        ("POST", UPLOADS, {**VERSION, "Upload-Length": "9" * 5000}),
        ("POST", UPLOADS, {**ONE_BYTE, "Upload-Metadata": "name YQBi"}),
        ("POST", UPLOADS, {**ONE_BYTE, "Upload-Metadata": "name /w=="}),
        ("POST", UPLOADS, {**ONE_BYTE, "Upload-Metadata": ",".join(f"k{number}" for number in range(2000))}),
        ("POST", UPLOADS, {**ONE_BYTE, "Upload-Metadata": "name YQ==", "Upload-Checksum": "md5 " * 99 + "x"}),
    ],
)
def test_text_that_no_database_holds_is_refused_and_breaks_nothing(
    here: Here, method: str, path: str, headers: dict[str, str]
) -> None:
    assert 400 <= here.client().ask(method, path, headers=headers).status_code < 500


@pytest.mark.parametrize("wish", ["bytes=" + "0-0," * 1000, "bytes=" + "9" * 4000 + "-", "bytes=--1", "bytes=x-"])
def test_many_ranges_and_ranges_that_are_none_cost_one_answer(here: Here, wish: str) -> None:
    client = here.client()
    answer = client.ask("GET", f"/api/v1/artefacts/{client.put(TEXT)}/content", headers={"Range": wish})
    assert (answer.status_code, answer.content) == (200, TEXT)
