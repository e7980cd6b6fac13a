"""Sealing: what is sealed opens only whole, in its own place, with its own key; and nothing tells what was inside."""

from base64 import urlsafe_b64encode
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.faults import SecretsFault
from tidemill.core.operations.master_keys import MasterKey, master_keys_of, text_of
from tidemill.core.operations.sealed_values import DataKey, seal, sealed_by, unseal, unwrap, wrap

KEY = DataKey(UUID(int=1), bytes(range(32)))
OTHER = DataKey(UUID(int=2), bytes(range(1, 33)))
MASTER, STRANGER = MasterKey(b"m" * 32), MasterKey(b"s" * 32)
NONCE = bytes(12)
ROW = "account_totp.secret:01900000-0000-7000-8000-000000000001"
SECRET = b"a secret that nobody may see"
SEALED = seal(KEY, SECRET, row=ROW, nonce=NONCE)


@given(plain=st.binary(max_size=2000), row=st.text(max_size=50), nonce=st.binary(min_size=12, max_size=12))
def test_what_is_sealed_opens_again(plain: bytes, row: str, nonce: bytes) -> None:
    sealed = seal(KEY, plain, row=row, nonce=nonce)
    assert unseal(KEY, sealed, row=row) == plain
    assert sealed_by(sealed) == KEY.id
    assert len(sealed) == 1 + 16 + 12 + len(plain) + 16


def test_the_form_of_a_sealed_value_never_changes() -> None:
    """Values of years ago must open: whoever changes the form gives it another version."""
    written = (
        "01000000000000000000000000000000010000000000000000000000006f9cc6bbd65ee6c928dcc1546c0cfff6"
        "b02c322a08ec0156a0edd6e6869fbaa574a15933bd0b9da988b5ddac"
    )
    assert SEALED.hex() == written


@pytest.mark.parametrize("bit", range(8 * len(SEALED)))
def test_a_value_with_one_bit_changed_does_not_open(bit: int) -> None:
    changed = bytearray(SEALED)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SecretsFault):
        unseal(KEY, bytes(changed), row=ROW)


@pytest.mark.parametrize("length", range(len(SEALED)))
def test_a_value_that_was_cut_does_not_open(length: int) -> None:
    for cut in (SEALED[:length], SEALED[length + 1 :], SEALED[:length] + SEALED[length + 1 :], SEALED + b"\0"):
        with pytest.raises(SecretsFault):
            unseal(KEY, cut, row=ROW)


@pytest.mark.parametrize(
    "row",
    [
        "account_totp.secret:01900000-0000-7000-8000-000000000002",
        "account_totp.spare:01900000-0000-7000-8000-000000000001",
        "signing_key.secret:01900000-0000-7000-8000-000000000001",
        ROW + " ",
        ROW[:-1],
        "",
    ],
)
def test_a_value_moved_to_another_row_column_or_table_does_not_open(row: str) -> None:
    with pytest.raises(SecretsFault, match="moved"):
        unseal(KEY, SEALED, row=row)


def test_a_value_opens_with_no_other_key_even_under_its_name() -> None:
    renamed = SEALED[:1] + OTHER.id.bytes + SEALED[17:]
    same_key_other_id = DataKey(OTHER.id, KEY.key)
    for key, sealed in ((OTHER, SEALED), (OTHER, renamed), (same_key_other_id, renamed), (KEY, renamed)):
        with pytest.raises(SecretsFault):
            unseal(key, sealed, row=ROW)


@given(st.binary(max_size=100))
def test_rubbish_is_a_fault_and_never_a_bug(rubbish: bytes) -> None:
    for call in (lambda: unseal(KEY, rubbish, row=ROW), lambda: unwrap(MASTER, KEY.id, rubbish)):
        with pytest.raises(SecretsFault):
            call()


def test_a_data_key_opens_only_under_its_master_key_and_its_id() -> None:
    wrapped = wrap(MASTER, KEY, nonce=NONCE)
    assert unwrap(MASTER, KEY.id, wrapped) == KEY
    for master, key_id, given_bytes in (
        (STRANGER, KEY.id, wrapped),
        (MASTER, OTHER.id, wrapped),
        (MASTER, KEY.id, wrapped[:-1]),
        (MASTER, KEY.id, wrapped + b"\0"),
        (MASTER, KEY.id, b"\x02" + wrapped[1:]),
        (MASTER, KEY.id, wrapped[:-1] + bytes([wrapped[-1] ^ 1])),
    ):
        with pytest.raises(SecretsFault):
            unwrap(master, key_id, given_bytes)


def test_a_wrapped_key_is_no_value_and_a_value_no_wrapped_key() -> None:
    """Even if one key did both jobs."""
    both = DataKey(KEY.id, MASTER.key)
    row = f"data_key.wrapped:{MASTER.id}"
    with pytest.raises(SecretsFault):
        unseal(both, wrap(MASTER, KEY, nonce=NONCE), row=row)
    with pytest.raises(SecretsFault):
        unwrap(MASTER, KEY.id, seal(both, KEY.key, row=row, nonce=NONCE))


def test_keys_and_secrets_are_in_no_text() -> None:
    with pytest.raises(SecretsFault) as caught:
        unseal(OTHER, SEALED, row=ROW)
    told = f"{caught.value!r} {KEY!r} {MASTER!r}"
    for secret in (SECRET, KEY.key, OTHER.key, MASTER.key, SEALED[29:]):
        assert repr(secret)[2:-1] not in told
        assert secret.hex() not in told
    assert text_of(MASTER) not in told


def test_a_weak_nonce_or_key_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        seal(KEY, SECRET, row=ROW, nonce=b"short")
    with pytest.raises(AssertionError):
        seal(DataKey(KEY.id, b"k" * 16), SECRET, row=ROW, nonce=NONCE)


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=4, unique=True))
def test_master_keys_read_back_as_they_were_written(keys: list[bytes]) -> None:
    masters = tuple(map(MasterKey, keys))
    assert master_keys_of("\n".join(map(text_of, masters))) == masters
    padded = " \t\r\n".join(urlsafe_b64encode(key).decode() for key in keys)
    assert master_keys_of(f"\n{padded}\n") == masters
    assert len({master.id for master in masters}) == len(masters)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "A" * 42,
        "A" * 44,
        "A" * 43 + "==",
        "A" * 43 + " # the new one",
        "A" * 43 + "," + "A" * 43,
        "A" * 42 + "+",
        "А" * 43,
        "-----BEGIN PRIVATE KEY-----",
        "\0" * 43,
    ],
)
def test_a_text_that_holds_anything_else_is_no_master_key(text: str) -> None:
    assert master_keys_of(text) is None


def test_the_same_key_twice_is_one_key_and_its_id_is_its_own() -> None:
    assert master_keys_of(f"{text_of(MASTER)} {text_of(MASTER)}") == (MASTER,)
    assert MASTER.id == MasterKey(b"m" * 32).id != STRANGER.id
    assert len(MASTER.id) == 16
