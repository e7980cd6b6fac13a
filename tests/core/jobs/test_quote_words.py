"""Numbers and lines of quotes, as people write them."""

import pytest

from tidemill.core.jobs.quotes.quote_words import duration, durations, span, spoken

HOUR, DAY = 3_600, 86_400


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0004, "1 s"),
        (0.2, "0.2 s"),
        (3.2, "3 s"),
        (100, "100 s"),
        (150, "2 min"),
        (HOUR, "1 h"),
        (18 * HOUR, "18 h"),
        (47 * HOUR, "47 h"),
        (185 * DAY, "185 days"),
        (4_000 * DAY, "4,000 days"),
    ],
)
def test_a_time_is_said_in_its_largest_fitting_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_range_of_times_names_its_unit_once_and_has_no_equal_ends() -> None:
    assert durations(46 * DAY, 185 * DAY) == "46 to 185 days"
    assert durations(30, 2 * HOUR) == "30 s to 2 h"
    assert durations(3.1, 3.3) == "3 s"


@pytest.mark.parametrize(
    ("amount", "said"),
    [(5, "5"), (999, "999"), (1_700, "1.7 thousand"), (1.7e10, "17 billion"), (2.5e8, "250 million")],
)
def test_a_large_number_is_said_in_words(amount: float, said: str) -> None:
    assert spoken(amount) == said


def test_a_range_of_amounts_has_no_equal_ends() -> None:
    assert (span(200_000, 200_000), span(10, 10_000)) == ("0.2", "0.00001 to 0.01")
