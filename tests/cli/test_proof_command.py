"""`tidemill proof verify`: what convinces a third party, and what does not."""

import dataclasses
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tests.core.jobs.test_receipts import NODE, a_receipt
from tests.core.trust.test_proofs import a_statement
from tidemill.cli.main import run
from tidemill.core.jobs.receipts import batch_bytes, inclusion, sign_batch
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows
from tidemill.core.trust.proofs.proof_file import FILE_MAX_BYTES, ProofFile, SignedReceipt, file_bytes, read_file
from tidemill.core.trust.proofs.refusals import ProofRefusal
from tidemill.core.trust.proofs.sumcheck import prove

SEED = 77
SIDES = (12, 30, 9)


def matrices() -> tuple[Any, Any, Any]:
    m, k, n = SIDES
    left = drawn_rows(SEED, LEFT, "int8", k, range(m))
    right = drawn_rows(SEED, RIGHT, "int8", n, range(k))
    return left, right, (left.astype(np.int64) @ right.astype(np.int64)).astype(np.int32)


def a_file(**changes: Any) -> ProofFile:
    left, right, product = matrices()
    of = a_statement(left, right, product)
    proof = prove(of, left, right)
    attempt = {"task_id": of.task_id, "attempt_id": of.attempt_id, "node_id": of.node_id, "lease": of.lease}
    sent = batch_bytes([a_receipt(8), a_receipt(9, **attempt, proof=proof), a_receipt(10)])
    receipt = SignedReceipt(inclusion(sent, 1), sign_batch(NODE, sent), NODE.key)
    return dataclasses.replace(ProofFile(of, proof, SEED, receipt), **changes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, matrix in zip(("a", "b", "c"), matrices(), strict=True):
        np.save(tmp_path / f"{name}.npy", matrix)
    return tmp_path


def verified(place: Path, file: ProofFile | bytes, *options: str) -> int:
    written = place / "proof.json"
    written.write_bytes(file if isinstance(file, bytes) else file_bytes(file))
    return run(["proof", "verify", str(written), *options])


def given(place: Path, *names: str) -> list[str]:
    options = {"a": "--left", "b": "--right", "c": "--product"}
    return [part for name in names for part in (options[name[0]], str(place / f"{name}.npy"))]


def test_a_proof_with_its_seed_and_the_product_convinces(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(place, a_file(), *given(place, "c")) == 0
    assert "Proved" in capsys.readouterr().err
    assert verified(place, a_file(), *given(place, "c"), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["proved"], told["code"], told["signed_by"]) == (True, None, NODE.key.hex())
    assert told["attempt_id"] == str(UUID(int=2))


def test_a_proof_with_all_matrices_convinces_without_a_seed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(place, a_file(seed=None, receipt=None), *given(place, "a", "b", "c")) == 0
    assert "Nobody has signed it" in capsys.readouterr().err


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"], ["a", "c"]])
def test_a_proof_without_its_matrices_proves_nothing(
    place: Path, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verified(place, a_file(seed=None), *given(place, *names)) == 1
    assert ProofRefusal.PROOF_NEEDS_MATRICES.sentence in capsys.readouterr().err


def test_another_seed_or_another_matrix_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(place, a_file(seed=SEED + 1), *given(place, "c")) == 1
    assert ProofRefusal.PROOF_OF_OTHER_MATRICES.sentence in capsys.readouterr().err
    product = matrices()[2]
    product[3, 3] += 1
    np.save(place / "c2.npy", product)
    assert verified(place, a_file(), *given(place, "c2"), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["proved"], told["code"]) == (False, "proof_of_other_matrices")


def test_a_wrong_product_that_was_committed_to_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right, product = matrices()
    product[3, 3] += 1
    np.save(place / "c2.npy", product)
    of = a_statement(left, right, product)
    assert verified(place, ProofFile(of, prove(of, left, right), SEED), *given(place, "c2")) == 1
    assert ProofRefusal.PROOF_WRONG.sentence in capsys.readouterr().err


def test_a_proof_moved_to_another_attempt_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = dataclasses.replace(a_file().statement, attempt_id=UUID(int=99))
    assert verified(place, a_file(statement=moved), *given(place, "c")) == 1
    assert ProofRefusal.PROOF_INCONSISTENT.sentence in capsys.readouterr().err


def test_a_receipt_of_another_attempt_or_by_another_key_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = batch_bytes([a_receipt(8), a_receipt(9)])
    other = SignedReceipt(inclusion(sent, 1), sign_batch(NODE, sent), NODE.key)
    assert verified(place, a_file(receipt=other), *given(place, "c")) == 1
    assert ProofRefusal.PROOF_RECEIPT_OTHER.sentence in capsys.readouterr().err
    true = a_file().receipt
    assert true
    assert verified(place, a_file(receipt=dataclasses.replace(true, node_key=bytes(32))), *given(place, "c")) == 1
    assert verified(place, a_file(receipt=dataclasses.replace(true, signature=bytes(64))), *given(place, "c")) == 1


def test_what_is_no_proof_is_refused_in_a_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = json.loads(file_bytes(a_file()))
    strange = [
        b"",
        b"[]",
        b"\x00" * 100,
        b" " * (FILE_MAX_BYTES + 1),
        *(json.dumps({**good, **change}).encode() for change in CHANGES),
        *(json.dumps({name: good[name] for name in good if name != missing}).encode() for missing in ("m", "proof")),
    ]
    for written in strange:
        assert verified(place, written, *given(place, "c")) == 1
        assert "PROOF" not in capsys.readouterr().err
        assert read_file(written) is ProofRefusal.PROOF_MALFORMED


CHANGES: list[dict[str, object]] = [
    {"version": 2},
    {"m": 0},
    {"m": 65_537},
    {"m": "12"},
    {"left": "ab"},
    {"left": "zz" * 32},
    {"task_id": "nobody"},
    {"lease": -1},
    {"seed": -1},
    {"proof": "0"},
    {"receipt": {}},
    {"receipt": 3},
]


def test_a_file_is_read_as_it_was_written() -> None:
    for file in (a_file(), a_file(seed=None), a_file(receipt=None)):
        assert read_file(file_bytes(file)) == file


def test_a_matrix_that_is_no_file_of_numpy_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c3.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O'}".ljust(117) + b"\n")
    assert verified(place, a_file(), *given(place, "c3")) == 1
    np.save(place / "c4.npy", matrices()[2].astype(np.float64))
    assert verified(place, a_file(), *given(place, "c4")) == 1
    np.save(place / "c5.npy", np.asfortranarray(matrices()[2]))
    assert verified(place, a_file(), *given(place, "c5")) == 1
    assert "c5.npy" in capsys.readouterr().err
