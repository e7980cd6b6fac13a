"""What a sandbox may be asked, and what it answers."""

from pathlib import PurePosixPath

import pytest

from tidemill.core.jobs.sandboxes import (
    Ability,
    Command,
    Enforcement,
    Mount,
    RunEnding,
    RunLimits,
    RunOutcome,
    RunSpecification,
    outcome,
    unmet,
)


def test_what_cannot_be_enforced_is_said_with_the_reason() -> None:
    enforced = Enforcement(frozenset({Ability.TIME}), {Ability.MEMORY: "Give the agent control groups."})
    assert unmet(frozenset({Ability.TIME}), enforced) == ()
    assert unmet(frozenset({Ability.TIME, Ability.CPU, Ability.MEMORY}), enforced) == (
        "Memory of all its processes together cannot be limited. Give the agent control groups.",
        "Its share of the processors cannot be limited.",
    )


@pytest.mark.parametrize(
    ("ending", "status", "expected"),
    [
        (RunEnding.DONE, 0, RunOutcome(RunEnding.DONE, exit_code=0)),
        (RunEnding.DONE, 128, RunOutcome(RunEnding.DONE, exit_code=128)),
        (RunEnding.DONE, 137, RunOutcome(RunEnding.DONE, signal=9)),
        (RunEnding.DONE, 255, RunOutcome(RunEnding.DONE, exit_code=255)),
        (RunEnding.DONE, None, RunOutcome(RunEnding.NOT_STARTED)),
        (RunEnding.DEADLINE, None, RunOutcome(RunEnding.DEADLINE)),
    ],
)
def test_an_outcome_is_read_from_a_shells_status(ending: RunEnding, status: int | None, expected: RunOutcome) -> None:
    assert outcome(ending, status) == expected
    assert expected.succeeded == (status == 0)


@pytest.mark.parametrize("name", ["", "..", "a/b", "-a", "A", "a" * 65, "a\n"])
def test_a_name_that_could_be_a_path_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        RunSpecification(name, Command(("true",)), RunLimits(seconds=1))


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"seconds": 1, "pids": -1}])
def test_a_limit_is_above_zero(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="limit"):
        RunLimits(**wrong)


def test_no_option_can_be_smuggled_in_by_a_zero_byte_or_a_relative_path() -> None:
    for wrong in (("a\0--bind",), ()):
        with pytest.raises(ValueError, match="program"):
            Command(wrong)
    for environment in ({"A": "b\0--share-net"}, {"A=B": "c"}, {"": "c"}):
        with pytest.raises(ValueError, match="holds no"):
            Command(("true",), environment)
    for source, target in (("a", "/b"), ("/a", "b"), ("/a", "/b/../../c")):
        with pytest.raises(ValueError, match="absolute"):
            Mount(PurePosixPath(source), PurePosixPath(target))
