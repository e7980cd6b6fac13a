"""Amounts as people write them, exactly; and text that a spreadsheet must not run."""

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.ledger.spreadsheets import harmless
from tidemill.core.money import AMOUNT_MAX_UC, MoneyRefusal, credits_of, micro_credits

AMOUNTS_UC = st.integers(0, AMOUNT_MAX_UC)


@pytest.mark.parametrize(
    ("amount_uc", "text"),
    [
        (0, "0"),
        (1, "0.000001"),
        (-1, "-0.000001"),
        (12_500_000, "12.5"),
        (-12_500_000, "-12.5"),
        (1_000_000_000, "1000"),
        (10**15, "1000000000"),
        (2**63 - 1, "9223372036854.775807"),
        (10**40 + 1, "1" + "0" * 34 + ".000001"),
    ],
)
def test_micro_credits_are_shown_as_credits(amount_uc: int, text: str) -> None:
    assert credits_of(amount_uc) == text


@given(AMOUNTS_UC)
def test_every_amount_is_read_as_it_was_shown(amount_uc: int) -> None:
    text = credits_of(amount_uc)
    assert micro_credits(text) == amount_uc
    assert micro_credits(Decimal(text)) == amount_uc
    assert micro_credits(json.loads(text)) == amount_uc
    assert micro_credits(json.loads(text, parse_float=Decimal)) == amount_uc


@pytest.mark.parametrize(
    ("amount", "amount_uc"),
    [
        ("0", 0),
        ("-0", 0),
        ("0.1", 100_000),
        (0.1, 100_000),
        (0.3, 300_000),
        (7, 7_000_000),
        ("007.50", 7_500_000),
        ("1.0000000000", 1_000_000),
        (Decimal("1e3"), 1_000_000_000),
        (1e3, 1_000_000_000),
        (Decimal("1e-6"), 1),
        (Decimal("0e+999999999"), 0),
        ("1000000000", AMOUNT_MAX_UC),
    ],
)
def test_an_amount_may_be_a_text_or_a_number(amount: object, amount_uc: int) -> None:
    assert micro_credits(amount) == amount_uc


@pytest.mark.parametrize(
    ("amount", "refusal"),
    [
        *(
            (text, MoneyRefusal.AMOUNT_MALFORMED)
            for text in ("", " 1", "1\n", "1,5", "1_000", "0x10", ".5", "5.", "+1")
        ),
        *((text, MoneyRefusal.AMOUNT_MALFORMED) for text in ("NaN", "Infinity", "1e3", "1e999999999", "٣", "１", "½")),
        *((bad, MoneyRefusal.AMOUNT_MALFORMED) for bad in (True, False, None, [], {}, b"1", 1j)),
        *((float(text), MoneyRefusal.AMOUNT_MALFORMED) for text in ("nan", "inf", "-inf")),
        *((Decimal(text), MoneyRefusal.AMOUNT_MALFORMED) for text in ("NaN", "sNaN", "-Infinity")),
        *((bad, MoneyRefusal.AMOUNT_NEGATIVE) for bad in ("-1", -1, -0.5, Decimal("-1e999999999"))),
        *((bad, MoneyRefusal.AMOUNT_TOO_LARGE) for bad in ("1000000000.000001", 10**4000, 1e300, "9" * 10**6)),
        *((Decimal(text), MoneyRefusal.AMOUNT_TOO_LARGE) for text in ("1e999999999", "1.5e999999999999999")),
        *((bad, MoneyRefusal.AMOUNT_TOO_FINE) for bad in ("0.0000001", 1e-7, "999999999.9999999", "0." + "1" * 10**6)),
        *((Decimal(text), MoneyRefusal.AMOUNT_TOO_FINE) for text in ("1e-999999999", "0.1234560000000000001")),
    ],
    ids=lambda value: repr(value)[:30] if not isinstance(value, int) else "number",
)
def test_what_is_no_amount_is_refused_at_once(amount: object, refusal: MoneyRefusal) -> None:
    began = time.process_time()
    assert micro_credits(amount) is refusal
    assert time.process_time() - began < 1


@given(st.decimals(allow_nan=True, allow_infinity=True) | st.floats() | st.text() | st.integers() | st.booleans())
def test_nothing_is_ever_rounded(amount: object) -> None:
    found = micro_credits(amount)
    if not isinstance(found, MoneyRefusal):
        value = Decimal(repr(amount)) if isinstance(amount, float) else Decimal(amount)  # type: ignore[arg-type]
        assert value == Decimal(found).scaleb(-6)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=cmd|' /C calc'!A0"])
def test_a_text_like_a_formula_is_made_harmless(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "invoice:1", "a=b", "'=1", "1-1", "né", " =1"])
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text
