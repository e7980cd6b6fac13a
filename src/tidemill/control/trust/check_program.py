"""The process that checks results for a control process: one at a time, within the memory that it was given.

Run as `python -m tidemill.control.trust.check_program MIB`, with a socket as its standard input. It says when it has
loaded. A request comes with the descriptors of its files, which are mapped, not copied. A check that does not fit into
the memory is answered with nothing, and the process ends: whoever asked starts another.
"""

import mmap
import os
import resource
import socket
import sys
from collections.abc import Sequence

from tidemill.core.jobs.sandboxes import MIB
from tidemill.core.trust.checks.check_requests import answer_bytes, carry_out, read_request

LENGTH_BYTES = 8
FILES_MAX = 64
TOO_LARGE = b""
"""The answer of a check that did not fit."""
READY = b"r"


def main(arguments: Sequence[str]) -> None:
    limit_bytes = int(arguments[0]) * MIB
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=os.dup(0)) as asker:
        asker.sendall(READY)
        while (asked := _receive(asker)) is not None:
            answer = _answer(*asked)
            asker.sendall(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
            if answer == TOO_LARGE:
                return


def _receive(asker: socket.socket) -> tuple[bytes, list[int]] | None:
    """The next request, with the descriptors of its files; None when nobody asks any more."""
    head, descriptors, _, _ = socket.recv_fds(asker, LENGTH_BYTES, FILES_MAX)
    if not head:
        return None
    sent = b""
    length = int.from_bytes(head, "big")
    while len(sent) < length:
        if not (part := asker.recv(length - len(sent))):
            return None
        sent += part
    return sent, descriptors


def _answer(sent: bytes, descriptors: list[int]) -> bytes:
    try:
        return answer_bytes(carry_out(read_request(sent), [_mapped(descriptor) for descriptor in descriptors]))
    except MemoryError:
        return TOO_LARGE
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _mapped(descriptor: int) -> memoryview:
    """A file's content, read from where it lies. An empty file cannot be mapped."""
    if os.fstat(descriptor).st_size == 0:
        return memoryview(b"")
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


if __name__ == "__main__":
    main(sys.argv[1:])
