"""Parameters, tasks and inputs from strangers: what fits is read, what does not is a sentence, and nothing breaks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.sandboxes.scenes import SCENE
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import CheckMethod, FileForm, KindRefusal, NumericClass, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs, limits_of
from tidemill.core.jobs.kinds.parameters import NAME_MAX
from tidemill.core.jobs.kinds.task_body import TASK_MAX_BYTES, Input, Priority, Task, read_task, task_bytes
from tidemill.core.jobs.sandboxes import MIB, Ability, RunLimits
from tidemill.core.settings.sections.work import ContainersSettings

ELSEWHERE = ("169.254.169.254/x", "localhost/x", "localhost:5000/x", "nas.lan/x", "ghcr.io:8080/x", "10.0.0.1:80/x/y")
"""From these an engine would fetch inside the network of a machine's owner."""
GOOD: dict[str, dict[str, Any]] = {
    "matmul": {"m": 64, "n": 32, "k": 16, "element": "int8", "seed": 7},
    "embed": {"texts": ["A tide mill.", "Ein Gezeitenkraftwerk."]},
    "script": {"program": "print('hello')\n", "seconds": 10, "arguments": ["--fast"]},
    "container": {"image": "ghcr.io/tools/blender:4.2", "command": ["blender", "-b"], "seconds": 60},
    "render": {"scene": SCENE, "width": 320, "height": 200, "samples": 4},
}
DIGEST = Digest("ab" * 32)
LIMITS = RunLimits(seconds=60.5, cpu_share=0.5)
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 2**16 + 1, 2**53, 2**64, -(2**70), 10**400, 0.5, float("inf")),
    *("", "\0", "int8 ", "\ud800", "x" * 100_000, "../../etc/passwd", "9" * 5000),
    *([], [[]], [None], [0] * 100_000, {}, {"": 1}, {"x": {"x": {"x": 1}}}, [{"name": 1}]),
)

CONTAINERS = ContainersSettings()


@pytest.mark.parametrize("name", GOOD)
def test_every_kind_reads_its_own_parameters_and_says_what_follows(name: str) -> None:
    kind = KINDS[name]
    work = kind.read(GOOD[name])
    assert not isinstance(work, TaskObjection)
    assert kind.needs(work).operations > 0
    assert limits_of(kind.needs(work), 60, CONTAINERS).memory_bytes >= kind.needs(work).memory_mib * MIB
    assert all(output.most_bytes > 0 for output in kind.outputs(work))
    assert kind.check(work) in CheckMethod
    assert kind.numeric_class(work) in NumericClass


def test_every_kind_has_an_example() -> None:
    assert GOOD.keys() == KINDS.keys()


def test_stake_is_at_risk_only_where_the_code_is_ours() -> None:
    assert [name for name, kind in KINDS.items() if kind.ours] == ["matmul", "embed", "render"]
    assert all(
        output.exact_bytes is not None or output.form is FileForm.FILES
        for name, kind in KINDS.items()
        for output in kind.outputs(kind.read(GOOD[name]))
    )


@pytest.mark.parametrize("name", GOOD)
def test_a_field_of_any_other_shape_is_a_sentence(name: str) -> None:
    """Or it is read within its bounds; never anything else."""
    for field in GOOD[name]:
        for hostile in HOSTILE:
            _answers({**GOOD[name], field: hostile}, name)
    for field in [*GOOD[name], "", "\0", "__class__", "m" * 10_000]:
        read = KINDS[name].read({**GOOD[name], f"{field}x": 1})
        assert isinstance(read, TaskObjection)
        assert "not known" in read.sentence
        assert repr(f"{field}x"[:NAME_MAX]) in read.sentence
        assert read.sentence.isprintable()


@pytest.mark.parametrize("name", GOOD)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
), st.integers(0, 5))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_parameters_break_a_kind(name: str, value: Any, which: int) -> None:
    fields = list(GOOD[name])
    _answers({**GOOD[name], fields[which % len(fields)]: value}, name)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("matmul", {"m": 65_537}, "m must be a whole number from 1 to 65,536"),
        ("matmul", {"k": True}, "k must be a whole number"),
        ("matmul", {"element": "float16"}, "element must be one of int8, float32"),
        ("matmul", {"m": 65_536, "n": 65_536, "k": 65_536, "element": "float32"}, "larger than one machine takes"),
        ("embed", {"texts": []}, "either texts, or the count"),
        ("embed", {"count": 3}, "either texts, or the count"),
        ("embed", {"texts": ["x"] * 513}, "a list of at most 512"),
        ("embed", {"texts": ["é" * 8193]}, "texts[0] must be a text of at most 16,384 bytes"),
        ("script", {"program": " \n"}, "program must be a Python program"),
        ("script", {"program": "x" * 32_769}, "at most 32,768 bytes"),
        ("script", {"seconds": 0}, "seconds must be a whole number"),
        ("script", {"arguments": ["a\0b"]}, "arguments[0] must be a text"),
        ("container", {"image": "Registry/Name; rm -rf /"}, "image must be a name"),
        ("container", {"image": "ghcr.io/a/../../containers/b"}, "image must be a name"),
        *(("container", {"image": one}, "image must be in one of these registries") for one in ELSEWHERE),
        ("container", {"command": []}, "command must begin with a program"),
        ("container", {"environment": [{"name": "A=B", "value": ""}]}, "environment must hold each name once"),
        ("container", {"environment": [{"name": "A", "value": ""}] * 2}, "environment must hold each name once"),
        ("container", {"gpu_memory_mib": 10}, "gpu_memory_mib must be left out"),
        ("render", {"tile": {"x": 300, "y": 0, "width": 21, "height": 1}}, "tile must lie within the picture"),
        ("render", {"width": 32_768, "height": 32_768}, "larger than one machine takes"),
        ("render", {"width": 4096, "height": 4096, "samples": 4097}, "samples must be a whole number"),
        ("render", {"scene": {**SCENE, "spheres": [*SCENE["spheres"], {}]}}, "scene.spheres[3].centre must be there"),
        ("render", {"scene": {**SCENE, "sky": {"red": 0, "green": 0, "blu": 0}}}, "scene.sky.blue must be there"),
        ("render", {"scene": {**SCENE, "sky": {"red": 0, "green": 0, "blue": 0, "x": 0}}}, "scene.sky has a field"),
        ("render", {"scene": {**SCENE, "camera": {**SCENE["camera"], "towards": SCENE["camera"]["at"]}}}, "camera"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(name: str, change: dict[str, Any], words: str) -> None:
    read = KINDS[name].read({**GOOD[name], **change})
    assert isinstance(read, TaskObjection)
    assert words in read.sentence
    assert read.sentence.endswith(".")


def test_inputs_are_those_that_the_kind_needs() -> None:
    given_matrices = {key: value for key, value in GOOD["matmul"].items() if key != "seed"}
    a, b = Input("a", DIGEST, 128 + 64 * 16), Input("b", DIGEST, 128 + 16 * 32)
    assert not isinstance(_work("matmul", given_matrices, a, b), TaskObjection)
    for inputs, words in (
        ((a,), "The input b is missing."),
        ((a, b, b), "Two inputs have the same name."),
        ((a, b, Input("c", DIGEST, 1)), "an input that tasks of this kind do not have"),
        ((Input("a", DIGEST, 10_000), b), "The input a has more than 5,120 bytes."),
    ):
        refused = _work("matmul", given_matrices, *inputs)
        assert isinstance(refused, TaskObjection)
        assert refused.refusal is KindRefusal.INPUTS_WRONG
        assert words in refused.sentence
    assert isinstance(_work("matmul", GOOD["matmul"], a), TaskObjection)
    assert not isinstance(_work("script", GOOD["script"], a, b), TaskObjection)
    assert isinstance(_work("script", {"seconds": 1}, a), TaskObjection)
    unknown = _work("mine", {})
    assert isinstance(unknown, TaskObjection)
    assert unknown.refusal is KindRefusal.KIND_UNKNOWN


@given(st.integers(1, 65_536), st.integers(1, 65_536), st.integers(1, 65_536), st.sampled_from(["int8", "float32"]))
def test_more_of_a_matrix_never_needs_less(m: int, n: int, k: int, element: str) -> None:
    kind = KINDS["matmul"]
    small, large = ({"m": m // d + 1, "n": n // d + 1, "k": k // d + 1, "element": element} for d in (3, 2))
    works = [kind.read(one) for one in (small, large)]
    if not any(isinstance(work, TaskObjection) for work in works):
        less, more = (kind.needs(work) for work in works)
        assert less.operations <= more.operations
        assert less.memory_mib <= more.memory_mib
        assert less.disk_mib <= more.disk_mib


def test_a_container_has_as_much_shared_memory_as_it_asks_for_or_else_as_the_pool_gives() -> None:
    asked = {"image": "alpine:3", "command": ["true"], "seconds": 9}
    for more, shared_mib in (({}, 8192), ({"shared_memory_mib": 256}, 256)):
        work = KINDS["container"].read({**asked, **more})
        assert not isinstance(work, TaskObjection)
        assert limits_of(KINDS["container"].needs(work), 9, CONTAINERS).shared_memory_bytes == shared_mib * MIB


def test_limits_have_room_and_are_all_above_zero() -> None:
    limits = limits_of(Needs(memory_mib=100, disk_mib=0, operations=1.0, cores=4, shared_memory_mib=0), 5.0, CONTAINERS)
    assert (limits.memory_bytes, limits.cpu_share, limits.gpu_memory_bytes) == (125 * MIB, 4.0, None)
    assert limits_of(Needs(100, 10, 1.0, devices=1, gpu_memory_mib=100), 5.0, CONTAINERS).gpu_memory_bytes == 125 * MIB


TASKS = st.builds(
    Task,
    kind=st.text("abcdefgh", min_size=1, max_size=20),
    parameters=st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=9) | st.none(), max_size=5),
    limits=st.builds(RunLimits, seconds=st.floats(0.001, 1e6), cpu_share=st.floats(0.01, 64), pids=st.integers(1, 999)),
    inputs=st.lists(st.builds(Input, st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,9}\Z"), st.just(DIGEST),
                              st.integers(0, 2**53)), max_size=4).map(tuple),
    demands=st.frozensets(st.sampled_from(Ability)),
    devices=st.integers(0, 64),
    gpu_memory_mib=st.integers(0, 2**31),
    seal_to=st.lists(st.binary(min_size=32, max_size=32), max_size=2).map(tuple),
    priority=st.sampled_from(Priority),
)  # fmt: skip


@given(TASKS)
@settings(deadline=None)
def test_a_task_comes_out_of_its_bytes_as_it_went_in(task: Task) -> None:
    body = task_bytes(task)
    assert read_task(body) == task
    assert task_bytes(read_task(body)) == body  # type: ignore[arg-type]


def test_what_a_newer_pool_adds_to_a_task_is_skipped() -> None:
    body = json.loads(task_bytes(_task("matmul", GOOD["matmul"])))
    read = read_task(json.dumps({**body, "colour": "blue", "limits": {**body["limits"], "moons": 3}}).encode())
    assert read == _task("matmul", GOOD["matmul"])


@pytest.mark.parametrize(
    "field", ["kind", "parameters", "inputs", "limits", "demands", "devices", "seal_to", "priority"]
)
def test_a_task_with_a_field_of_another_shape_is_refused(field: str) -> None:
    body = json.loads(task_bytes(_task("matmul", GOOD["matmul"])))
    for hostile in (None, -1, 2**60, "x" * 70, [1], [{}], [["a"]], True):
        assert isinstance(read_task(json.dumps({**body, field: hostile}).encode()), TaskObjection), hostile
    del body[field]
    assert isinstance(read_task(json.dumps(body).encode()), TaskObjection)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": [{"name": "../a", "digest": "ab" * 32, "size_bytes": 1}]},
        {"inputs": [{"name": ".hidden", "digest": "ab" * 32, "size_bytes": 1}]},
        {"inputs": [{"name": "a\n", "digest": "ab" * 32, "size_bytes": 1}]},
        {"inputs": [{"name": "a", "digest": "AB" * 32, "size_bytes": 1}]},
        {"inputs": [{"name": "a", "digest": "ab" * 32, "size_bytes": -1}]},
        {"inputs": [{"name": "a", "digest": "ab" * 32, "size_bytes": 1}] * 65},
        {"seal_to": ["zz" * 32]},
        {"seal_to": ["ab" * 32] * 5},
        {"demands": ["FLYING"]},
    ],
    ids=str,
)
def test_names_digests_keys_and_demands_are_checked(change: dict[str, Any]) -> None:
    body = json.loads(task_bytes(_task("matmul", GOOD["matmul"])))
    assert isinstance(read_task(json.dumps({**body, **change}).encode()), TaskObjection)


@pytest.mark.parametrize("value", [0, -1, True, "1", None, 1e400, 2**60, [1], 0.5])
def test_a_limit_that_is_no_limit_is_refused(value: Any) -> None:
    body = json.loads(task_bytes(_task("matmul", GOOD["matmul"])))
    for name in ("memory_bytes", "pids"):
        changed = {**body, "limits": {**body["limits"], name: value}}
        assert isinstance(read_task(json.dumps(changed).encode()), TaskObjection)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"1", b"{", b"[" * 60_000, b'{"a":' * 10_000, b"\xff", b'{"kind":NaN}', b"9" * 5000],
    ids=lambda body: repr(body[:8]),
)
def test_bytes_that_are_no_task_are_refused(body: bytes) -> None:
    assert isinstance(read_task(body), TaskObjection)


def test_a_task_ends_at_its_size() -> None:
    task = _task("script", {"seconds": 1, "program": "x" * TASK_MAX_BYTES})
    refused = read_task(task_bytes(task))
    assert isinstance(refused, TaskObjection)
    assert "65,536 bytes" in refused.sentence


def _answers(parameters: dict[str, Any], name: str) -> None:
    read = KINDS[name].read(parameters)
    if isinstance(read, TaskObjection):
        assert len(read.sentence) < 500
        assert read.sentence.endswith(".")
    else:
        assert KINDS[name].needs(read).memory_mib > 0


def _task(kind: str, parameters: dict[str, Any], *inputs: Input) -> Task:
    return Task(kind, parameters, LIMITS, inputs)


def _work(kind: str, parameters: dict[str, Any], *inputs: Input) -> Any:
    return work_of(_task(kind, parameters, *inputs))
