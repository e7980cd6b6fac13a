"""`tidemill proof`: check the proof of a product of matrices, offline and without trust in the pool that wrote it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, report

if TYPE_CHECKING:
    from tidemill.core.refusals import Refusal
    from tidemill.core.trust.proofs.proof_file import ProofFile
    from tidemill.core.trust.proofs.statement import Statement

app = CommandGroup("Proofs of products of matrices: verify.")

File = Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, exists=True, help="The proof.")]
_MATRIX: dict[str, Any] = {"dir_okay": False, "exists": True}
Left = Annotated[Path | None, typer.Option(help="The left matrix, in NumPy's format, if no seed draws it.", **_MATRIX)]
Right = Annotated[
    Path | None, typer.Option(help="The right matrix, in NumPy's format, if no seed draws it.", **_MATRIX)
]
Product = Annotated[Path | None, typer.Option(help="The product, in NumPy's format.", **_MATRIX)]


@app.callback()
def proof() -> None:
    """Proofs of products of matrices: verify."""


@app.command()
def verify(
    file: File, left: Left = None, right: Right = None, product: Product = None, as_json: AsJson = False
) -> None:
    """Replay the proof that C = A·B, and compare it with the matrices and with the node's signature.

    Without the matrices a proof can only be seen to agree with itself, which proves nothing: then the answer is no."""
    proof_file = _read(file)
    refusal = _refused(proof_file, left, right, product)
    fields = {
        "proved": refusal is None,
        "code": refusal and refusal.code,
        "signed_by": proof_file.receipt and proof_file.receipt.node_key.hex(),
        "task_id": str(proof_file.statement.task_id),
        "attempt_id": str(proof_file.statement.attempt_id),
        "node_id": str(proof_file.statement.node_id),
        "lease": proof_file.statement.lease,
    }
    if refusal:
        if as_json:
            print_json(fields)
        raise CommandRefused(refusal.sentence)
    report(_success_sentence(proof_file), fields, as_json=as_json)


def _read(file: Path) -> "ProofFile":
    from tidemill.core.trust.proofs.proof_file import FILE_MAX_BYTES, read_file
    from tidemill.core.trust.proofs.refusals import ProofRefusal

    with file.open("rb") as opened:
        proof_file = read_file(opened.read(FILE_MAX_BYTES + 1))
    if isinstance(proof_file, ProofRefusal):
        raise CommandRefused(proof_file.sentence)
    return proof_file


def _refused(proof_file: "ProofFile", left: Path | None, right: Path | None, product: Path | None) -> "Refusal | None":
    """Why the file proves nothing; None if it proves the product."""
    from tidemill.core.trust.proofs.proof_file import refused_receipt
    from tidemill.core.trust.proofs.refusals import ProofRefusal
    from tidemill.core.trust.proofs.sumcheck import refused_proof, replay

    replayed = replay(proof_file.statement, proof_file.proof)
    if isinstance(replayed, ProofRefusal):
        return replayed
    if proof_file.receipt and (refusal := refused_receipt(proof_file.statement, proof_file.proof, proof_file.receipt)):
        return refusal
    factors = _factors(proof_file.statement, proof_file.seed, left, right)
    if factors is None or product is None:
        return ProofRefusal.PROOF_NEEDS_MATRICES
    return refused_proof(proof_file.statement, proof_file.proof, factors[0], factors[1], _matrix(product))


def _factors(statement: "Statement", seed: int | None, left: Path | None, right: Path | None) -> Any:
    """Both matrices, from their files or from the seed; None if neither is there."""
    from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows

    if left and right:
        return _matrix(left), _matrix(right)
    if seed is None or left or right:
        return None
    return (
        drawn_rows(seed, LEFT, "int8", statement.k, range(statement.m)),
        drawn_rows(seed, RIGHT, "int8", statement.n, range(statement.k)),
    )


def _matrix(file: Path) -> Any:
    """A matrix mapped from its file; it need not fit into memory."""
    import numpy as np

    from tidemill.core.matrices.npy import HEADER_MAX_BYTES, UnreadableFile, read_layout

    with file.open("rb") as opened:
        layout = read_layout(opened.read(HEADER_MAX_BYTES), file.stat().st_size)
    if isinstance(layout, UnreadableFile):
        raise CommandRefused(f"{file}: {layout.sentence}")
    element, shape = np.dtype(layout.element).newbyteorder("<"), (layout.rows, layout.columns)
    return np.memmap(file, element, mode="r", offset=layout.begins_at, shape=shape)


def _success_sentence(proof_file: "ProofFile") -> str:
    statement = proof_file.statement
    sizes = f"{statement.m}×{statement.k} and {statement.k}×{statement.n}"
    sentence = f"Proved: the product of {sizes} is right, by attempt {statement.attempt_id}."
    return (
        f"{sentence} Signed by {proof_file.receipt.node_key.hex()}."
        if proof_file.receipt
        else f"{sentence} Nobody has signed it."
    )
