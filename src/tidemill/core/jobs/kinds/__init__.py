"""The kinds of tasks there are: pool and nodes read tasks by this one table. docs/how-to/add-a-runner.md adds one.

A kind that no runner carries out yet may stand here all the same: it can be quoted, and no node takes it.
"""

from collections.abc import Mapping
from typing import Any

from tidemill.core.jobs.kinds import container, embed, matmul, render, script
from tidemill.core.jobs.kinds.kind import ExpectedInput, KindRefusal, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.task_body import Input, Task

KINDS: Mapping[str, TaskKind[Any]] = {
    kind.name: kind for kind in (matmul.KIND, embed.KIND, script.KIND, container.KIND, render.KIND)
}


def work_of(task: Task, kinds: Mapping[str, TaskKind[Any]] = KINDS) -> Any | TaskObjection:
    """The work that a task asks for, if its kind is known, its parameters fit and its inputs are those it needs."""
    kind = kinds.get(task.kind)
    if kind is None:
        return TaskObjection(KindRefusal.KIND_UNKNOWN, f"The kinds there are: {', '.join(kinds)}.")
    work = kind.read(task.parameters)
    if isinstance(work, TaskObjection):
        return work
    return _about_inputs(kind.inputs(work), task.inputs, others=kind.own_inputs) or work


def _about_inputs(
    expected: tuple[ExpectedInput, ...], given: tuple[Input, ...], *, others: bool
) -> TaskObjection | None:
    sizes_bytes = {one.name: one.size_bytes for one in given}
    if len(sizes_bytes) < len(given):
        return TaskObjection(KindRefusal.INPUTS_WRONG, "Two inputs have the same name.")
    for one in expected:
        if one.name not in sizes_bytes:
            return TaskObjection(KindRefusal.INPUTS_WRONG, f"The input {one.name} is missing.")
        if sizes_bytes[one.name] > one.most_bytes:
            return TaskObjection(
                KindRefusal.INPUTS_WRONG, f"The input {one.name} has more than {one.most_bytes:,} bytes."
            )
    if not others and len(given) > len(expected):
        return TaskObjection(KindRefusal.INPUTS_WRONG, "There is an input that tasks of this kind do not have.")
    return None
