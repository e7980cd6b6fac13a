"""The decisions about accounts, without any world around them."""

import itertools
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network
from uuid import UUID

import pyotp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidemill.core.accounts.addresses import ADDRESS_MAX, Address, AddressRefusal, parse_address
from tidemill.core.accounts.keys import (
    NAME_MAX,
    NETWORKS_MAX,
    ApiKey,
    KeyRefusal,
    key_prefix,
    key_sha256,
    looks_like_key,
    parse_networks,
    refused_key,
    refused_key_use,
    write_key,
)
from tidemill.core.accounts.known_passwords import KNOWN_PASSWORDS
from tidemill.core.accounts.kyc import DECISIONS, SUBMISSIONS, Kyc, KycRefusal, next_kyc
from tidemill.core.accounts.lockout import Failures, LockRules, lock_of
from tidemill.core.accounts.passwords import PASSWORD_MAX, PasswordRefusal, checked_password, normal_password
from tidemill.core.accounts.permissions import RULES, ObjectScope, PermissionRefusal, RouteRule, why_forbidden
from tidemill.core.accounts.roles import HOME_OPERATOR, STRANGER, Caller, Credential, Role, Scope
from tidemill.core.accounts.second_factor import (
    is_time_code,
    matching_step,
    normal_code,
    provisioning_uri,
    recovery_code,
    recovery_sha256,
    secret_text,
)
from tidemill.core.accounts.sessions import (
    Binding,
    Session,
    SessionEnd,
    SessionOrigin,
    SessionRules,
    end_of,
    refresh_outcome,
)
from tidemill.core.clock import DAY, HOUR, SECOND, Instant

ANN = Address("Ann@example.com")
IpAddress = IPv4Address | IPv6Address

NOW = Instant(1_800_000_000 * SECOND)
SECRET = b"a secret of 20 bytes"


@pytest.mark.parametrize(
    ("password", "refusal"),
    [
        ("abc123", PasswordRefusal.PASSWORD_TOO_SHORT),
        ("abcdefg", PasswordRefusal.PASSWORD_TOO_SHORT),
        ("", PasswordRefusal.PASSWORD_TOO_SHORT),
        ("a1" * 128 + "x", PasswordRefusal.PASSWORD_TOO_LONG),
        ("ﬃ" * 100 + "1", PasswordRefusal.PASSWORD_TOO_LONG),  # each is three letters on any keyboard
        ("abcdefgh", PasswordRefusal.PASSWORD_TOO_SIMPLE),
        ("28374655", PasswordRefusal.PASSWORD_TOO_SIMPLE),
        ("!!!!!!!!!!!!!!!!!!!!", PasswordRefusal.PASSWORD_TOO_SIMPLE),
        ("ababababababababab", PasswordRefusal.PASSWORD_TOO_SIMPLE),
        ("Password1", PasswordRefusal.PASSWORD_COMMON),
        ("PASSWORD1", PasswordRefusal.PASSWORD_COMMON),
        ("ann@example.com", PasswordRefusal.PASSWORD_IS_ADDRESS),
        ("ANN@example.com2024!", PasswordRefusal.PASSWORD_IS_ADDRESS),
        ("ann123456789", PasswordRefusal.PASSWORD_IS_ADDRESS),
    ],
)
def test_weak_passwords_are_refused_with_the_reason(password: str, refusal: PasswordRefusal) -> None:
    assert checked_password(password, ANN) is refusal


@pytest.mark.parametrize(
    "password", ["tide4mill", "correct horse battery staple", "пароль 2024", "密码密码密码密码1", "a1" * 128]
)
def test_good_passwords_are_taken(password: str) -> None:
    assert checked_password(password, ANN) == normal_password(password)


def test_a_password_is_the_same_on_every_keyboard() -> None:
    composed, decomposed = "caf\u00e9 au lait 1", "cafe\u0301 au lait 1"
    assert checked_password(composed, ANN) == checked_password(decomposed, ANN)


@given(st.text(max_size=300))
def test_a_password_is_taken_as_it_is_compared_or_refused(password: str) -> None:
    checked = checked_password(password, ANN)
    if isinstance(checked, str):
        assert normal_password(checked) == checked, "what was hashed once is hashed the same at every login"
        assert 8 <= len(checked) <= PASSWORD_MAX
        assert checked.lower() not in KNOWN_PASSWORDS


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Ann@Example.COM", "Ann@example.com"),
        ("  ann@example.com ", "ann@example.com"),
        ("ann+tag@mail.example.co.uk", "ann+tag@mail.example.co.uk"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@почта.рф", "ann@xn--80a1acny.xn--p1ai"),
        ("o'neil@example.com", "o'neil@example.com"),
    ],
)
def test_addresses_are_kept_as_mail_delivers_them(text: str, kept: str) -> None:
    assert parse_address(text) == Address(kept)


@pytest.mark.parametrize(
    "text",
    [
        *("", "@", "ann", "ann@", "@example.com", "ann@localhost", "ann@example..com", "ann@.example.com"),
        *("a@b@example.com", "ann @example.com", "ann.@example.com", ".ann@example.com", "an..n@example.com"),
        *("аnn@example.com", "ann@exa mple.com", "ann@example.com\r\nBcc: eve@example.com", "ann\x00@example.com"),
        *("ann@192.0.2.1", "ann@[192.0.2.1]", "ann@-example.com", "ann@example-.com", "a" * 65 + "@example.com"),
        *("ann@" + "a" * 64 + ".com", "ann@" + "a." * 130 + "com", "ann@exam\ud800ple.com", '"ann"@example.com'),
        *("ann@example.com,eve@example.com", "<ann@example.com>", "ann@example.com\n", "ann@exa\u2024mple\u3002123"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    found = parse_address(text)
    assert found is AddressRefusal.ADDRESS_MALFORMED or text.strip() == getattr(found, "text", "")


@given(st.emails() | st.text(max_size=300))
@example("ann@ex" + "\u00ad" * 10 + "ample.com")
@example("ann@" + "ﷺ" * 60 + ".com")
def test_an_accepted_address_is_plain_bounded_and_parses_to_itself(text: str) -> None:
    found = parse_address(text)
    if isinstance(found, Address):
        assert parse_address(found.text) == found
        assert found.text.isascii()
        assert found.text.isprintable()
        assert " " not in found.text
        assert len(found.text) <= ADDRESS_MAX
        assert found.masked.endswith(found.text.partition("@")[2])


def test_one_address_is_one_account_however_it_is_cased() -> None:
    keys = {Address("ANN@example.com").key, Address("ann@EXAMPLE.com").key, ANN.key}
    assert keys == {"ann@example.com"}
    assert ANN.masked == "A…@example.com"


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([], ()),
        (["192.0.2.7"], ("192.0.2.7/32",)),
        (["192.0.2.7/24", " 2001:db8::1/32 "], ("192.0.2.0/24", "2001:db8::/32")),
        (["0.0.0.0/0"], ("0.0.0.0/0",)),
    ],
)
def test_networks_are_kept_in_their_shortest_form(texts: list[str], kept: tuple[str, ...]) -> None:
    assert parse_networks(texts) == kept


@pytest.mark.parametrize(
    "text", ["", "example.com", "192.0.2.7/33", "192.0.2", "::/129", "1.2.3.4/24/24", "0x7f000001"]
)
def test_what_is_no_network_is_refused(text: str) -> None:
    assert parse_networks([text]) is KeyRefusal.KEY_NETWORKS_MALFORMED


def test_networks_are_bounded() -> None:
    assert len(parse_networks(["192.0.2.0/24"] * NETWORKS_MAX)) == NETWORKS_MAX  # type: ignore[arg-type]
    assert parse_networks(["192.0.2.0/24"] * (NETWORKS_MAX + 1)) is KeyRefusal.KEY_NETWORKS_MALFORMED


def a_key(**changed: object) -> ApiKey:
    key = ApiKey(
        UUID(int=1), UUID(int=2), "render farm", Role.CUSTOMER, frozenset({Scope.ACCOUNT_READ}), NOW, UUID(int=1)
    )
    return replace(key, **changed)  # type: ignore[arg-type]


@given(st.ip_addresses(), st.ip_addresses(), st.integers(0, 32))
def test_a_key_is_used_from_its_networks_only(allowed: IpAddress, caller: IpAddress, prefix: int) -> None:
    network = ip_network(f"{allowed}/{prefix}", strict=False)
    inside = (getattr(caller, "ipv4_mapped", None) or caller) in network
    refusal = refused_key_use(a_key(networks=(str(network),)), str(caller), NOW)
    assert refusal is (None if inside else KeyRefusal.KEY_NOT_FROM_HERE)


@pytest.mark.parametrize("caller", ["", "testclient", "192.0.2.7, 198.51.100.1", "192.0.2.7/24", "unix:"])
def test_a_key_with_networks_is_not_used_from_nowhere(caller: str) -> None:
    assert refused_key_use(a_key(networks=("0.0.0.0/0", "::/0")), caller, NOW) is KeyRefusal.KEY_NOT_FROM_HERE


def test_an_address_inside_an_address_is_looked_at() -> None:
    assert refused_key_use(a_key(networks=("192.0.2.0/24",)), "::ffff:192.0.2.7", NOW) is None
    assert refused_key_use(a_key(networks=("::/0",)), "::ffff:192.0.2.7", NOW) is KeyRefusal.KEY_NOT_FROM_HERE


def test_a_key_ends_at_its_instant_and_not_before() -> None:
    for name in ("expires_at", "revoked_at"):
        assert refused_key_use(a_key(**{name: NOW}), "192.0.2.7", NOW) is KeyRefusal.KEY_UNKNOWN
        assert refused_key_use(a_key(**{name: Instant(NOW + 1)}), "192.0.2.7", NOW) is None


@given(st.binary(min_size=40, max_size=40))
def test_a_key_looks_like_one_and_is_known_by_its_hash(entropy: bytes) -> None:
    key = write_key(entropy)
    assert looks_like_key(key)
    assert len(key) == 67
    assert key.startswith(key_prefix(key))
    assert len(key_prefix(key)) == 11
    assert len(key_sha256(key)) == 32
    assert not looks_like_key(key + "\n")
    assert not looks_like_key(key.upper())


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({}, None),
        ({"name": ""}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"name": "   "}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"name": "a\x00b"}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"name": "a\u202eb"}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"name": "a\ud800"}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"name": "n" * (NAME_MAX + 1)}, KeyRefusal.KEY_NAME_MALFORMED),
        ({"role": Role.OPERATOR}, KeyRefusal.KEY_ROLE_MISSING),
        ({"scopes": frozenset()}, KeyRefusal.KEY_SCOPES_MISSING),
        ({"scopes": frozenset({Scope.POOL_READ})}, KeyRefusal.KEY_SCOPES_MISSING),
        ({"scopes": frozenset({Scope.ACCOUNT_READ, Scope.POOL_WRITE})}, KeyRefusal.KEY_SCOPES_MISSING),
        ({"role": Role.OPERATOR, "scopes": frozenset(Scope), "held": frozenset({Role.OPERATOR})}, None),
        ({"expires_at": NOW}, KeyRefusal.KEY_EXPIRES_IN_THE_PAST),
        ({"expires_at": Instant(NOW + 1)}, None),
    ],
)
def test_a_key_is_made_only_for_what_its_account_may(changed: dict[str, object], refusal: KeyRefusal | None) -> None:
    wanted = {
        "name": "render farm",
        "role": Role.CUSTOMER,
        "scopes": frozenset({Scope.ACCOUNT_READ}),
        "expires_at": None,
        "held": frozenset({Role.CUSTOMER}),
        "now": NOW,
    }
    assert refused_key(**{**wanted, **changed}) is refusal  # type: ignore[arg-type]


def test_verification_moves_along_its_tables_only() -> None:
    ways = list(itertools.product(Kyc, Kyc))
    asked = {way for way in ways if not isinstance(next_kyc(*way, SUBMISSIONS), KycRefusal)}
    decided = {way for way in ways if not isinstance(next_kyc(*way, DECISIONS), KycRefusal)}
    assert asked == {(Kyc.NONE, Kyc.SUBMITTED), (Kyc.REJECTED, Kyc.SUBMITTED)}
    assert decided == {
        (Kyc.SUBMITTED, Kyc.VERIFIED),
        (Kyc.SUBMITTED, Kyc.REJECTED),
        (Kyc.VERIFIED, Kyc.REJECTED),
        (Kyc.REJECTED, Kyc.VERIFIED),
    }


def test_nobody_verifies_themselves() -> None:
    assert all(Kyc.VERIFIED not in reached for reached in SUBMISSIONS.values())


RULES_AT_THE_DOOR = SessionRules(idle_us=DAY, lifetime_us=7 * DAY, remembered_us=30 * DAY, binding=Binding.WARN)
HOME = SessionOrigin("192.0.2.7", "a browser")


def a_session(**changed: object) -> Session:
    session = Session(
        id=UUID(int=1),
        account_id=UUID(int=2),
        began_at=NOW,
        seen_at=NOW,
        fresh_at=NOW,
        expires_at=Instant(NOW + 7 * DAY),
        address=HOME.address,
        user_agent=HOME.user_agent,
        remember=False,
        second_factor=False,
        ended_at=None,
        ended_why=None,
    )
    return replace(session, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "after_us", "ended"),
    [
        ({}, DAY - 1, None),
        ({}, DAY, SessionEnd.IDLE),
        ({"remember": True}, DAY, None),
        ({"seen_at": Instant(NOW + 6 * DAY)}, 7 * DAY - 1, None),
        ({"seen_at": Instant(NOW + 6 * DAY - 1)}, 7 * DAY - 1, SessionEnd.IDLE),
        ({"seen_at": Instant(NOW + 7 * DAY)}, 7 * DAY - 1, None),
        ({"seen_at": Instant(NOW + 7 * DAY)}, 7 * DAY, SessionEnd.EXPIRED),
        ({"remember": True}, 7 * DAY, SessionEnd.EXPIRED),
    ],
)
def test_a_session_is_over_when_idle_or_old(
    changed: dict[str, object], after_us: int, ended: SessionEnd | None
) -> None:
    assert end_of(a_session(**changed), RULES_AT_THE_DOOR, Instant(NOW + after_us)) is ended


def test_how_long_a_session_lasts_is_chosen_when_it_begins() -> None:
    assert RULES_AT_THE_DOOR.expires_at(NOW, remember=False) == NOW + 7 * DAY
    assert RULES_AT_THE_DOOR.expires_at(NOW, remember=True) == NOW + 30 * DAY


AWAY = SessionOrigin("198.51.100.1", "a browser")
NEXT_DOOR = SessionOrigin("192.0.2.200", "a browser")


@pytest.mark.parametrize(
    ("binding", "device", "used_before", "ended"),
    [
        (Binding.STRICT, HOME, False, None),
        (Binding.STRICT, NEXT_DOOR, False, None),
        (Binding.STRICT, AWAY, False, SessionEnd.MOVED),
        (Binding.STRICT, replace(HOME, user_agent="another"), False, SessionEnd.MOVED),
        (Binding.WARN, AWAY, False, None),
        (Binding.OFF, AWAY, False, None),
        (Binding.OFF, HOME, True, SessionEnd.REUSED),
        (Binding.STRICT, AWAY, True, SessionEnd.REUSED),
    ],
)
def test_a_refresh_goes_on_or_ends_the_session(
    binding: Binding, device: SessionOrigin, used_before: bool, ended: SessionEnd | None
) -> None:
    rules = replace(RULES_AT_THE_DOOR, binding=binding)
    assert refresh_outcome(a_session(), rules, device, used_before=used_before, now=NOW) is ended


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_the_network_of_a_device_is_its_neighbourhood(address: str, network: str) -> None:
    assert SessionOrigin(address, "").network == network


@given(
    here=st.integers(0, 10),
    elsewhere=st.integers(0, 100),
    codes=st.integers(0, 20),
    known=st.booleans(),
    last_here_s=st.integers(0, 10_000),
    last_s=st.integers(10_000, 20_000),
)
def test_only_ones_own_failures_lock_and_many_networks_lock_only_strangers(
    here: int, elsewhere: int, codes: int, known: bool, last_here_s: int, last_s: int
) -> None:
    rules = LockRules(failures_max=5, everywhere_max=50, lock_us=HOUR)
    last_here, last = Instant(last_here_s * SECOND), Instant(last_s * SECOND)
    lock = lock_of(Failures(here, here + elsewhere, codes, last_here, last, known), rules)
    until = lock.until if lock else None
    if (here + elsewhere >= 50 or codes >= 10) and not known:
        assert until == last + HOUR
    else:
        assert until == (last_here + HOUR if here >= 5 else None), "what happens elsewhere prolongs nothing"
    if lock:
        assert not lock.opens(None)
        assert lock.opens("abcd-efgh-ijkl-mnop"), "a recovery code opens every lock"
        assert lock.opens("123 456") == (here < 5 and codes < 10), "codes open only where nobody guesses codes"


@given(st.binary(min_size=20, max_size=20), st.integers(300, 4_000_000_000), st.integers(-3, 3))
def test_codes_are_those_of_any_authenticator_within_one_step(secret: bytes, at_s: int, drift: int) -> None:
    totp, now = pyotp.TOTP(secret_text(secret)), Instant(at_s * SECOND)
    step = at_s // 30 + drift
    near = {totp.generate_otp(at_s // 30 + one) for one in (-1, 0, 1)}
    code = totp.generate_otp(step)
    found = matching_step(secret, code, now, used_step=0)
    assert (found is not None) == (code in near)
    if found is not None:
        assert totp.generate_otp(found) == code
        assert matching_step(secret, code, now, used_step=found) in (None, *range(found + 1, found + 3))


def test_a_code_is_no_good_once_it_or_a_later_one_was_used() -> None:
    totp, step = pyotp.TOTP(secret_text(SECRET)), NOW // (30 * SECOND)
    assert matching_step(SECRET, totp.generate_otp(step), NOW, used_step=step - 1) == step
    assert matching_step(SECRET, totp.generate_otp(step), NOW, used_step=step) is None
    assert matching_step(SECRET, totp.generate_otp(step), NOW, used_step=step + 1) is None


@pytest.mark.parametrize("code", ["", "12345", "1234567", "12345a", "１２３４５６", "abcd-efgh", "123 456"])
def test_what_is_no_code_is_not_taken_for_one(code: str) -> None:
    assert not is_time_code(code)
    assert matching_step(SECRET, code, NOW, used_step=0) is None


def test_authenticators_read_the_uri_and_codes_are_typed_with_spaces() -> None:
    parsed = pyotp.parse_uri(provisioning_uri(SECRET, account="ann@example.com", issuer="Mill & Söhne: east"))
    assert isinstance(parsed, pyotp.TOTP)
    assert (parsed.secret, parsed.interval, parsed.digits) == (secret_text(SECRET), 30, 6)
    assert normal_code(" 123 456\u00a0") == "123456"


@given(st.binary(min_size=10, max_size=10))
def test_a_recovery_code_may_be_typed_carelessly(entropy: bytes) -> None:
    code = recovery_code(entropy)
    assert [len(group) for group in code.split("-")] == [4, 4, 4, 4]
    careless = f" {code.upper().replace('-', ' ')}"
    assert recovery_sha256(careless) == recovery_sha256(code)
    assert not is_time_code(normal_code(code))


CALLERS = st.builds(
    Caller,
    name=st.just("someone"),
    credential=st.sampled_from([Credential.SESSION, Credential.KEY]),
    account_id=st.just(UUID(int=1)),
    roles=st.frozensets(st.sampled_from(Role)),
    scopes=st.frozensets(st.sampled_from(Scope)),
    second_factor=st.booleans(),
    fresh_at=st.integers(0, NOW).map(Instant),
).map(lambda caller: replace(caller, scopes=caller.scopes if caller.credential is Credential.KEY else None))


@given(CALLERS, st.sampled_from(sorted(RULES)))
def test_nobody_without_two_factors_or_a_key_does_what_takes_an_operator(caller: Caller, route: str) -> None:
    rule = RULES[route]
    let_in = why_forbidden(rule, caller, NOW, 600 * SECOND) is None
    if let_in and rule.roles == frozenset({Role.OPERATOR}):
        assert Role.OPERATOR in caller.roles
        assert caller.second_factor or caller.credential is Credential.KEY
    if let_in and rule.fresh:
        assert NOW - caller.fresh_at <= 600 * SECOND
        assert caller.credential is Credential.SESSION
    if let_in and rule.roles is not None and caller.credential is Credential.KEY:
        assert rule.scope in (caller.scopes or ())


@given(CALLERS, st.sampled_from(sorted(RULES)), st.sampled_from(Scope))
def test_fewer_scopes_never_open_a_door(caller: Caller, route: str, scope: Scope) -> None:
    if caller.scopes is not None and why_forbidden(RULES[route], caller, NOW, HOUR) is not None:
        narrower = replace(caller, scopes=caller.scopes - {scope})
        assert why_forbidden(RULES[route], narrower, NOW, HOUR) is not None


@pytest.mark.parametrize("route", sorted(RULES))
def test_strangers_reach_only_what_says_so(route: str) -> None:
    rule = RULES[route]
    assert (why_forbidden(rule, STRANGER, NOW, HOUR) is None) == (rule.roles is None)
    home = why_forbidden(rule, HOME_OPERATOR, NOW, HOUR)
    assert (home is None) == (rule.roles is None or rule.whose in (ObjectScope.ALL, ObjectScope.OWN_OR_ALL))


def test_a_password_is_fresh_to_the_last_microsecond() -> None:
    rule = RouteRule(frozenset(Role), ObjectScope.OWN, fresh=True)
    caller = Caller(
        name="ann",
        credential=Credential.SESSION,
        account_id=UUID(int=1),
        roles=frozenset({Role.CUSTOMER}),
        fresh_at=Instant(NOW - HOUR),
    )
    assert why_forbidden(rule, caller, NOW, HOUR) is None
    assert why_forbidden(rule, caller, Instant(NOW + 1), HOUR) is PermissionRefusal.FRESH_LOGIN_NEEDED
