"""What a task prints: bounded whatever it does, in order, and honest about what is missing."""

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.jobs.task_output import (
    AT_ONCE,
    HEAD_CHARACTERS,
    HEAD_LINES,
    LINE_MAX,
    TAIL_LINES,
    OutputLines,
    TaskOutput,
)


def lines_of(told: list[OutputLines]) -> dict[int, str]:
    return {one.first + place: line for one in told for place, line in enumerate(one.lines)}


def test_lines_are_told_as_they_come_however_they_are_cut() -> None:
    output = TaskOutput()
    output.add("stdout", b"one\ntw")
    output.add("stderr", b"other\n")
    output.add("stdout", b"o\nthr")
    assert output.due() == [OutputLines(0, ("one", "other", "two"))]
    assert output.due() == []
    assert output.rest() == [OutputLines(3, ("thr",))]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_whatever_is_printed_every_line_is_bounded_and_can_be_stored(chunks: list[bytes]) -> None:
    output = TaskOutput()
    for chunk in chunks:
        output.add("stdout", chunk)
    told = [line for one in output.due() + output.rest() for line in one.lines]
    assert all(len(line) <= LINE_MAX and "\0" not in line and "\x1b" not in line for line in told)
    assert all(line.encode() for line in told if line)


def test_a_line_without_an_end_takes_no_more_than_a_line() -> None:
    output = TaskOutput()
    for _ in range(1_000):
        output.add("stdout", b"x" * 10_000)
    (told,) = output.rest()
    assert told.lines == ("x" * (LINE_MAX - 1) + "…",)


def test_whoever_prints_much_at_once_has_the_middle_left_out_and_it_is_said() -> None:
    output = TaskOutput()
    output.add("stdout", b"".join(b"%d\n" % number for number in range(1_000)))
    told = lines_of(output.due())
    assert len(told) == AT_ONCE + 1
    assert told[AT_ONCE // 2] == f"… {1_000 - AT_ONCE} lines were left out here …"
    assert told[999] == "999"
    assert all(line == str(number) for number, line in told.items() if "…" not in line)


def test_of_very_much_the_first_and_the_last_lines_are_told() -> None:
    output, told = TaskOutput(), []
    for number in range(50_000):
        output.add("stdout", b"%d\n" % number)
        if number % 100 == 99:
            told += output.due()
    told += output.rest()
    lines = lines_of(told)
    assert len(lines) == HEAD_LINES + 1 + TAIL_LINES
    assert lines[HEAD_LINES] == f"… {50_000 - HEAD_LINES - TAIL_LINES:,} lines were left out here …"
    assert lines[49_999] == "49999"


def test_long_lines_count_by_their_length() -> None:
    output = TaskOutput()
    told = []
    for _ in range(1_000):
        output.add("stderr", b"y" * 3_999 + b"\n")
        told += output.due()
    told += output.rest()
    assert sum(len(line) for one in told for line in one.lines) < 2 * HEAD_CHARACTERS


def test_the_last_words_are_those_on_standard_error_if_there_are_any() -> None:
    output = TaskOutput()
    output.add("stdout", b"about to fail\n")
    assert output.last_line == "about to fail"
    output.add("stderr", b"ValueError: mine\n")
    output.add("stdout", b"and more\n")
    assert output.last_line == "ValueError: mine"


def test_progress_only_grows_and_is_no_line() -> None:
    output = TaskOutput()
    output.add("stderr", b"tidemill-progress 500000\ntidemill-progress 20\nfinal words\n\ntidemill-progress 9999999\n")
    assert output.progress_ppm == 1_000_000
    assert output.last_line == "final words"
    assert lines_of(output.rest()) == {0: "final words", 1: ""}
