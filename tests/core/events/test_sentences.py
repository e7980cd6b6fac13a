"""Every event in words: no kind is left out, no object is shown as one, and strange events do no harm."""

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest

import tidemill.control.areas  # noqa: F401  # loads every event there is
from tidemill.core.events.log import KINDS
from tidemill.core.events.sentences import sentence
from tidemill.core.nodes.challenge.figures import Figures, MachineFigures

ID = UUID("01a1f057-cad6-7f1a-9a89-5d297194bfd0")
EVENTS_OF_THE_PROGRAM = sorted(kind for kind, event in KINDS.items() if event.__module__.startswith("tidemill."))
FIGURES = Figures(0, "H100", 81_559, 65_247, 22_591_841_680, 0, 0, 1, 1_000_000)
MACHINE = MachineFigures(9, 8, 64_000, 64_000, 10**11)
PLAIN = {UUID: ID, str: "a word", int: 10**9, bool: True, float: 1.5, Figures: FIGURES, MachineFigures: MACHINE}
KNOWN = {"rules": {"price": "1.5", "windows": None}, "values": {"money.commission": "10%"}, "by": f"account:{ID}"}


def sample(name: str, kind: Any) -> Any:
    """A value of a field, as its type says."""
    if name in KNOWN:
        return KNOWN[name]
    if get_origin(kind) is types.UnionType:
        return sample(name, get_args(kind)[0])
    if get_origin(kind) is tuple:
        return (sample(name, get_args(kind)[0]),)
    return PLAIN[kind]


def bodies(kind: str) -> Iterator[Mapping[str, Any]]:
    """A body as the database keeps it; and one with every value that may be left out left out."""
    hints = get_type_hints(KINDS[kind])
    fields = {field.name: hints[field.name] for field in dataclasses.fields(KINDS[kind])}
    full = {name: sample(name, hint) for name, hint in fields.items()}
    least = {name: None if type(None) in get_args(hint) else full[name] for name, hint in fields.items()}
    for values in (full, least):
        yield json.loads(json.dumps(KINDS[kind](**values).body(), default=str))


@pytest.mark.parametrize("kind", EVENTS_OF_THE_PROGRAM)
def test_every_kind_of_event_is_told_in_a_sentence(kind: str) -> None:
    for body in bodies(kind):
        told = sentence(kind, body)
        assert not told.startswith(kind), f"{kind} has no words"
        assert not [part for part in ("{", "[", "None", "_", "object Object", str(ID)) if part in told], told
        assert told[0].isupper(), told


def test_what_a_stranger_reads_first_is_plain() -> None:
    assert sentence("pool.created", {"version": "0.1.0"}) == "The pool began, with Tidemill 0.1.0."
    thrown = {"switch": "all", "stopped": True, "reason": "racks are moved", "by": "operator"}
    assert sentence("pool.switch_thrown", thrown) == "Operator stopped everything. Reason: racks are moved"
    placed = {"account_id": str(ID), "job_id": str(ID), "count": 1, "nodes": 1}
    assert sentence("tasks.placed", placed) == "Job 7194bfd0: 1 task placed on 1 node."


@pytest.mark.parametrize("odd", [None, "soon", 10**30, float("nan"), {"a": [1]}, []])
def test_an_event_of_another_version_is_told_with_what_it_has(odd: object) -> None:
    for kind in EVENTS_OF_THE_PROGRAM:
        for body in bodies(kind):
            for name in body:
                assert sentence(kind, {**body, name: odd})
                assert sentence(kind, {key: value for key, value in body.items() if key != name})
    assert sentence("pool.painted", {"colours": {"red": 1}}) == 'pool.painted: colours={"red": 1}'
