"""A process whose disk is full for a while: `python -m tests.worlds.agents.filled_spool limit|disk|receipt FILE`.

`limit` and `receipt` let no file of the process grow; `disk` is on a small disk with a file `ballast` to remove.
It ends with 0 if everything is as it should be.
"""

import asyncio
import resource
import sys
from pathlib import Path

from tests.worlds.agents.spool_reports import lines, number_in, receipt
from tidemill.core.faults import Fault
from tidemill.link.dialled.spool import Spool

MOST_BYTES = 10**9


async def refuses_and_goes_on(file: Path, *, limited: bool) -> None:
    spool = await Spool.open(file, MOST_BYTES)
    if limited:
        let_files_grow_to(400_000)
    kept, sentences = await _append_until_full(spool)
    assert sentences and len(kept) > 10, (len(sentences), len(kept))  # noqa: PT018
    assert "disk" in sentences[0], sentences[0]
    if limited:
        let_files_grow_to(resource.RLIM_INFINITY)
    else:
        file.with_name("ballast").unlink()
    kept[await spool.append(receipt(5_000))] = 5_000
    assert list(kept) == list(range(1, len(kept) + 1)), "numbers have a gap"
    await spool.close()
    await _expect(file, kept)


async def keeps_the_receipt(file: Path) -> None:
    spool = await Spool.open(file, MOST_BYTES)
    let_files_grow_to(200_000)
    many = [*(lines(mark, 3_900) for mark in range(200)), receipt(7)]
    told = await asyncio.gather(*(spool.append(one) for one in many), return_exceptions=True)
    assert all(isinstance(one, Fault) for one in told[:-1]), told[:3]
    assert told[-1] == 1, told[-1]
    await spool.close()
    await _expect(file, {1: 7})


def let_files_grow_to(size_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


async def _append_until_full(spool: Spool) -> tuple[dict[int, int], list[str]]:
    kept: dict[int, int] = {}
    sentences: list[str] = []
    for mark in range(1, 1_000):
        try:
            kept[await spool.append(receipt(mark, 2_000))] = mark
        except Fault as fault:
            sentences.append(str(fault))
        if len(sentences) == 20:
            break
    return kept, sentences


async def _expect(file: Path, kept: dict[int, int]) -> None:
    spool = await Spool.open(file, MOST_BYTES)
    assert spool.set_aside is None
    found = {number: number_in(report) for number, report in await spool.read(0, MOST_BYTES)}
    assert found == kept, (len(found), len(kept))
    assert spool.last_number == len(kept)
    await spool.close()


if __name__ == "__main__":
    how, place = sys.argv[1], Path(sys.argv[2])
    asyncio.run(keeps_the_receipt(place) if how == "receipt" else refuses_and_goes_on(place, limited=how == "limit"))
