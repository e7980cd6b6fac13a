"""The kinds of tasks: pool and nodes read tasks by this one table. docs/how-to/add-a-runner.md adds one.

A kind without a runner may stand here, too: it can be quoted, and no node takes it.
"""

from collections.abc import Mapping
from typing import Any

from tidemill.core.jobs.kinds import container, embed, matmul, render, script
from tidemill.core.jobs.kinds.kind import ExpectedInput, KindRefusal, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.task_body import Input, Task

KINDS: Mapping[str, TaskKind[Any]] = {
    kind.name: kind for kind in (matmul.KIND, embed.KIND, script.KIND, container.KIND, render.KIND)
}

OUR_KINDS = frozenset(kind.name for kind in KINDS.values() if kind.ours)
"""Kinds whose programs are ours: a failure there is no customer's fault."""


def work_of(task: Task, kinds: Mapping[str, TaskKind[Any]] = KINDS) -> Any | TaskObjection:
    """The work that a task asks for, if its kind is known, its parameters fit and its inputs are the expected ones."""
    kind = kinds.get(task.kind)
    if kind is None:
        return TaskObjection(KindRefusal.KIND_UNKNOWN, f"The kinds there are: {', '.join(kinds)}.")
    work = kind.read(task.parameters)
    if isinstance(work, TaskObjection):
        return work
    return _about_inputs(kind.inputs(work), task.inputs, extra_allowed=kind.own_inputs) or work


def _about_inputs(
    expected: tuple[ExpectedInput, ...], inputs: tuple[Input, ...], *, extra_allowed: bool
) -> TaskObjection | None:
    sizes_bytes = {input_.name: input_.size_bytes for input_ in inputs}
    if len(sizes_bytes) < len(inputs):
        return TaskObjection(KindRefusal.INPUTS_WRONG, "Two inputs have the same name.")
    for expected_input in expected:
        if expected_input.name not in sizes_bytes:
            return TaskObjection(KindRefusal.INPUTS_WRONG, f"The input {expected_input.name} is missing.")
        if sizes_bytes[expected_input.name] > expected_input.most_bytes:
            return TaskObjection(
                KindRefusal.INPUTS_WRONG,
                f"The input {expected_input.name} has more than {expected_input.most_bytes:,} bytes.",
            )
    if not extra_allowed and len(inputs) > len(expected):
        return TaskObjection(KindRefusal.INPUTS_WRONG, "There is an input that tasks of this kind do not have.")
    return None
