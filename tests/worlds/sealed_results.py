"""Sealed results, opened at once: production opens them piece by piece."""

from tidemill.core.jobs.results import ResultBinding, ResultRefusal, opened


def opened_whole(sealed: bytes, key: bytes, bound: ResultBinding) -> bytes | ResultRefusal:
    pieces = list(opened([sealed], key, bound))
    plain = [piece for piece in pieces if isinstance(piece, bytes)]
    return b"".join(plain) if len(plain) == len(pieces) else ResultRefusal.RESULT_DOES_NOT_OPEN
