"""Settings: where values come from, what is refused and how, and what never shows."""

import tomllib
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.faults import SettingsFault
from tidemill.core.settings import Settings, SettingSource, SourcedSettings, SourceKind, build, pool_fingerprint, rows

HOME = Path("/srv/tidemill")
SECRET = "hunter2-of-the-tide"


def built(
    toml: str = "", environment: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> SourcedSettings:
    return build(
        toml=tomllib.loads(toml),
        toml_name="tidemill.toml",
        environment=environment or {},
        home=HOME,
        overrides=overrides or {},
    )


def problems(
    toml: str = "", environment: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> list[str]:
    with pytest.raises(SettingsFault) as caught:
        built(toml, environment, overrides)
    return str(caught.value).splitlines()


def test_without_any_source_everything_has_its_default() -> None:
    settings = built().settings
    assert settings == Settings(home=HOME)
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8420, None)
    assert settings.link.heartbeat_s == 30
    assert settings.market.default_hourly_uc == 200_000
    assert settings.money.commission_ppm == 100_000
    assert settings.reputation.start_points == 300
    assert set(built().sources.values()) == {SettingSource(SourceKind.DEFAULT)}


def test_the_command_line_wins_over_environment_file_and_default() -> None:
    toml, environment, overrides = "port = 1", {"TIDEMILL_PORT": "2"}, {"port": 3}
    seen = [built(), built(toml), built(toml, environment), built(toml, environment, overrides)]
    assert [one.settings.port for one in seen] == [8420, 1, 2, 3]
    assert [str(one.sources["port"]) for one in seen] == [
        "default",
        "file tidemill.toml",
        "environment TIDEMILL_PORT",
        "command line",
    ]


def test_a_flag_that_was_not_given_overrides_nothing() -> None:
    assert built("port = 1", overrides={"port": None}).settings.port == 1


def test_home_has_the_default_that_the_caller_brings() -> None:
    assert built().settings.home == HOME
    moved = built(environment={"TIDEMILL_HOME": "/mnt/pool"})
    assert moved.settings.home == Path("/mnt/pool")
    assert moved.sources["home"] == SettingSource(SourceKind.ENVIRONMENT, "TIDEMILL_HOME")
    assert "/" in problems('home = "pool"')[0]


def test_the_owner_of_the_schema_is_the_program_unless_told_otherwise() -> None:
    program, owner = "postgresql://program@db/pool", "postgresql://owner@db/pool"
    one = built(environment={"TIDEMILL_DATABASE_URL": program})
    assert one.settings.database_owner_url == program
    assert one.sources["database_owner_url"] == one.sources["database_url"]
    assert built(environment={"TIDEMILL_DATABASE_URL": program, "TIDEMILL_DATABASE_OWNER_URL": owner}).settings == (
        built(f'database_url = "{program}"\ndatabase_owner_url = "{owner}"').settings
    )


def test_an_empty_text_unsets_what_a_weaker_place_set() -> None:
    one = built('[tracing]\nendpoint = "https://collector/v1"', {"TIDEMILL_TRACING_ENDPOINT": ""})
    assert one.settings.tracing.endpoint is None


def test_variables_of_others_and_reserved_ones_are_left_alone() -> None:
    environment = {"PATH": "/bin", "TIDEMILL_CONFIG": "/etc/tidemill.toml", "TIDEMILL_TEST_ONLY": "1"}
    build(toml={}, toml_name="", environment=environment, home=HOME, reserved={"TIDEMILL_TEST_ONLY"})
    assert len(problems(environment=environment)) == 1


@pytest.mark.parametrize(
    ("toml", "environment", "words"),
    [
        ("[link]\nhartbeat_s = 3", {}, ["link.hartbeat_s", "file tidemill.toml", "did you mean link.heartbeat_s?"]),
        ("heartbeat_s = 3", {}, ["heartbeat_s", "did you mean link.heartbeat_s?"]),
        ("[reputation]\nstart_points = 3", {}, ["reputation.start_points", "did you mean reputation.start?"]),
        ("[qqq]", {}, ["qqq", "tidemill config"]),
        ("link = 3", {}, ["link", "is a section: write [link]"]),
        ("", {"TIDEMILL_PROT": "3"}, ["TIDEMILL_PROT", "environment", "did you mean TIDEMILL_PORT?"]),
        ("", {"TIDEMILL_ZZ": "3"}, ["TIDEMILL_ZZ", "tidemill config"]),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(
    toml: str, environment: dict[str, str], words: list[str]
) -> None:
    (sentence,) = problems(toml, environment)
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("port = true", ["port (file tidemill.toml) is True", "a whole number", "1 to 65535"]),
        ('port = "80"', ["port", '"80"', "in quotation marks"]),
        ("port = 80.0", ["port", "a whole number"]),
        ("port = 65536", ["port", "out of bounds", "1 to 65535"]),
        ("[link]\nheartbeat_s = nan", ["link.heartbeat_s", "nan"]),
        ("[link]\nheartbeat_s = inf", ["link.heartbeat_s", "inf"]),
        ("[link]\nheartbeat_s = true", ["link.heartbeat_s", "True"]),
        ('[link]\nheartbeat_s = "3 weeks"', ["link.heartbeat_s", '"3 weeks"', '"30s"']),
        ("[link.heartbeat_s]\na = 1", ["link.heartbeat_s", "a table"]),
        ("[money]\nburn = 1.1", ["money.burn", "from 0% to 100%"]),
        ("[market]\ndefault_hourly = 0.0000001", ["market.default_hourly", "more than 6 decimal places"]),
        ("[market]\ndefault_hourly = -1", ["market.default_hourly", "at least 0"]),
        ("[reputation]\nstart = 60.05", ["reputation.start", "more than 1 decimal place"]),
        ('[http]\nbody_limit_bytes = "1.5"', ["http.body_limit_bytes", "512MiB"]),
        ('[http]\ntrusted_proxies = "10.0.0.1/8"', ["http.trusted_proxies", "10.0.0.1/8", "beyond its mask"]),
        ('[http]\ntrusted_proxies = ["::/0"]', ["http.trusted_proxies", "'::/0' is everyone"]),
        ("[http]\ntrusted_proxies = [1]", ["http.trusted_proxies", "10.0.0.0/8"]),
        ('[http]\ntls_key = "~/key.pem"', ["http.tls_key", "full path"]),
        ('[log]\nlevel = "loud"', ["log.level", '"loud"', "debug, info, warning, error"]),
        ('[database]\nbackups_enabled = "yes"', ["database.backups_enabled", "true or false"]),
        ('host = "300.1.1.1"', ["host", '"300.1.1.1"', "an IP address or a host name"]),
        ('[tracing]\nendpoint = "collector"', ["tracing.endpoint", "https://"]),
        ('database_url = "mysql://u@h/d"', ["database_url", "postgresql://"]),
        ('database_url = "postgresql://h/d"', ["database_url", "names no user"]),
    ],
)
def test_a_wrong_value_is_refused_by_name_place_and_what_is_allowed(toml: str, words: list[str]) -> None:
    (sentence,) = problems(toml)
    assert all(word in sentence for word in words), sentence
    assert sentence.endswith(".")
    assert "(file tidemill.toml)" in sentence


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('host = "0.0.0.0"', ["TLS", "http.tls_certificate", "http.trusted_proxies"]),
        ('host = "gpu.example"', ["TLS"]),
        ('[http]\ntls_key = "/k.pem"', ["http.tls_certificate and http.tls_key must be set together"]),
        ("[link]\nheartbeat_s = 300", ["link.offline_after_s must be longer than link.heartbeat_s", "5m (default)"]),
        ("[value_policy]\nprice_weight = 0.3", ["value_policy.price_weight is 30%", "sum to 100%"]),
        ("[fast_policy]\ncost_weight = 0.100001", ["fast_policy.cost_weight is 10.0001%", "sum to 100%"]),
        ("[money]\nburn = 0.81", ["at most 100% together"]),
        ("[money]\ncommission = 0.01", ["money.commission must cover money.self_trade_loss"]),
        ("[nvlink]\nlow = 1.6", ["nvlink.low, which must be at most nvlink.high"]),
        ("[database]\nbackup_keep_daily = 0\nbackup_keep_weekly = 0", ["keep at least one"]),
        ('database_owner_url = "postgresql://o@h/d"', ["needs database_url"]),
    ],
)
def test_settings_that_contradict_each_other_are_refused(toml: str, words: list[str]) -> None:
    (sentence,) = problems(toml)
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    "toml",
    [
        'host = "::1"',
        'host = "127.0.0.5"',
        'host = "localhost"',
        'host = "0.0.0.0"\n[http]\ntls_certificate = "/c.pem"\ntls_key = "/k.pem"',
        'host = "0.0.0.0"\n[http]\ntrusted_proxies = ["192.0.2.1", "fd00::/8"]',
    ],
)
def test_a_guarded_address_may_be_listened_on(toml: str) -> None:
    built(toml)


def test_every_problem_is_reported_at_once_and_one_mistake_once() -> None:
    found = problems(
        '[login]\nlock_s = "soon"\n[jobs]\nattempts_max = 0\n[link]\noffline_after_s = 20',
        {"TIDEMILL_PORT": "http", "TIDEMILL_HOTS": "x"},
        {"log.format": "xml"},
    )
    named = ["login.lock_s", "jobs.attempts_max", "port", '"TIDEMILL_HOTS"', "log.format", "link.offline_after_s"]
    assert [sentence.split(" ")[0] for sentence in found] == named


def test_a_wrong_value_is_reported_even_when_it_is_overridden() -> None:
    (sentence,) = problems("port = true", {"TIDEMILL_PORT": "80"})
    assert "file tidemill.toml" in sentence


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://program:{SECRET}@db/pool",
        f"postgresql://program@db/pool?password={SECRET}",
        f"postgresql://program@db1:1,db2:2/pool?sslpassword={SECRET}&host=/run/db",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    one = built(
        environment={"TIDEMILL_DATABASE_URL": url, "TIDEMILL_TRACING_ENDPOINT": f"https://{SECRET}@h/?k={SECRET}"}
    )
    assert one.settings.database_url == url
    assert SECRET not in repr(one) + str(one.settings) + repr(rows(one)) + pool_fingerprint(one.settings)
    shown = {row.name: row.value for row in rows(one)}
    assert shown["database_url"].startswith("postgresql://program")
    assert "***" in shown["database_url"]
    assert shown["tracing.endpoint"] == "https://***@h/?k=***"


@pytest.mark.parametrize(
    "url",
    [
        f"postgres://u:{SECRET}@h/d",
        f"postgresql://u:a/{SECRET}@h/d",
        f"postgresql://u:a@b/{SECRET}@h/d",
        f"postgresql://u:a@b#{SECRET}@h/d",
        f"postgresql://u:[{SECRET}@h/d",
        f"postgresql://u:{SECRET}\n@h/d",
    ],
)
def test_a_refused_database_url_is_not_repeated(url: str) -> None:
    assert SECRET not in "".join(problems(environment={"TIDEMILL_DATABASE_URL": url}))


def test_settings_cannot_be_changed_and_can_be_a_key() -> None:
    settings = built().settings
    with pytest.raises(FrozenInstanceError):
        settings.port = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        settings.link.heartbeat_s = 1  # type: ignore[misc]
    assert {settings: 1}[Settings(home=HOME)] == 1


def test_processes_agree_on_the_pool_and_may_differ_in_the_rest() -> None:
    ours = pool_fingerprint(built().settings)
    assert len(bytes.fromhex(ours)) == 32
    process = built('port = 1\nhome = "/x"\ndatabase_url = "postgresql://u:p@h/d"\n[log]\nlevel = "debug"')
    assert pool_fingerprint(process.settings) == ours
    assert pool_fingerprint(built("[link]\nheartbeat_s = 31").settings) != ours
    assert pool_fingerprint(built('[link]\nheartbeat_s = "0.5m"').settings) == ours


@given(
    toml=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
    name=st.sampled_from(["port", "link", "home", "host", "database_url", "http"]),
    text=st.text(),
)
def test_whatever_is_written_is_either_built_or_refused_in_sentences(toml: object, name: str, text: str) -> None:
    sentences: list[str] = []
    try:
        build(toml={name: toml}, toml_name="f", environment={"TIDEMILL_LINK_SLOW_S": text}, home=HOME)
    except SettingsFault as fault:
        sentences = str(fault).splitlines()
    assert all(sentence.endswith((".", "?")) for sentence in sentences)
