"""Commitments: a Merkle tree of SHA-256 over numbered leaves. The root is published first; any leaf can be shown later.

Leaves and inner nodes are hashed with different first bytes, so neither can pass for the other, and a path has exactly
as many steps as the number of leaves requires. A tree that is not full repeats its last node.
"""

import hashlib
from collections.abc import Iterable, Sequence

HASH_BYTES = 32

_LEAF = b"\x00"
_INNER = b"\x01"


def leaf_hash(leaf: bytes | memoryview) -> bytes:
    """The hash of a leaf in the tree."""
    hashed = hashlib.sha256(_LEAF)
    hashed.update(leaf)
    return hashed.digest()


class MerkleTree:
    """All levels of a tree, from the leaves' hashes to the root; 64 bytes a leaf."""

    def __init__(self, leaf_hashes: Iterable[bytes]) -> None:
        """The hashes of the leaves in their order, one by one or several concatenated."""
        level = b"".join(leaf_hashes)
        assert level, "a tree has a leaf"
        self._levels = [level]
        while len(level) > HASH_BYTES:
            level = _next_level(level)
            self._levels.append(level)

    @property
    def root(self) -> bytes:
        return self._levels[-1]

    def path(self, position: int) -> bytes:
        """The neighbours on the way from a leaf to the root, lowest first, concatenated."""
        return b"".join(_at(level, (position >> height) ^ 1) for height, level in enumerate(self._levels[:-1]))


def path_bytes(leaves: int) -> int:
    """How long a path is in a tree with so many leaves."""
    return (leaves - 1).bit_length() * HASH_BYTES


def is_leaf_of(root: bytes, leaves: int, position: int, leaf: bytes, path: bytes) -> bool:
    """Whether the leaf stands at this position of the tree with this root."""
    if not 0 <= position < leaves or len(path) != path_bytes(leaves):
        return False
    hashed = leaf_hash(leaf)
    for height in range(len(path) // HASH_BYTES):
        neighbour = path[height * HASH_BYTES : (height + 1) * HASH_BYTES]
        pair = neighbour + hashed if (position >> height) & 1 else hashed + neighbour
        hashed = hashlib.sha256(_INNER + pair).digest()
    return hashed == root


def drawn_places(draw: bytes, purpose: str, positions: int, count: int) -> Sequence[int]:
    """Distinct positions that follow only from a random draw; all of them where there are no more than `count`."""
    if positions <= count:
        return list(range(positions))
    drawn: dict[int, None] = {}
    step = 0
    while len(drawn) < count:
        hashed = hashlib.sha256(draw + step.to_bytes(8, "little") + purpose.encode()).digest()
        drawn[int.from_bytes(hashed, "little") % positions] = None
        step += 1
    return list(drawn)


def _next_level(level: bytes) -> bytes:
    if len(level) % (2 * HASH_BYTES):
        level += level[-HASH_BYTES:]
    view, width = memoryview(level), 2 * HASH_BYTES
    sha256, hashes = hashlib.sha256, bytearray()
    for at in range(0, len(level), width):
        hashes += sha256(_INNER + view[at : at + width]).digest()
    return bytes(hashes)


def _at(level: bytes, position: int) -> bytes:
    position = min(position, len(level) // HASH_BYTES - 1)
    return level[position * HASH_BYTES : (position + 1) * HASH_BYTES]
