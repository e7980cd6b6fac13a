"""The catalogue of settings: every definition is whole, readable from everywhere, and in the reference."""

import json
import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.faults import SettingsFault
from tidemill.core.settings import (
    Definition,
    SettingScope,
    SettingSource,
    SourceKind,
    build,
    catalogue,
    reference,
    rows,
)
from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue
from tidemill.core.settings.kinds.quantities import (
    CREDITS,
    DURATION,
    FACTOR_PPM,
    INTEGER,
    MEMORY,
    NUMBER,
    POINTS,
    SHARE,
    SHARE_PPM,
    SIZE,
)
from tidemill.core.settings.kinds.texts import SWITCH
from tidemill.core.settings.layers import SettingValue, from_command_line, from_environment, from_file, read
from tidemill.core.settings.tree import sections

HOME = Path("/srv/tidemill")
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"
EXAMPLES = {
    "home": "/mnt/pool",
    "host": "localhost",
    "database_url": "postgresql://u:p@h/d",
    "database_owner_url": "postgresql://u:p@h/d",
    "http.tls_certificate": "/c.pem",
    "http.tls_key": "/k.pem",
    "http.trusted_proxies": "10.0.0.0/8,192.0.2.1",
    "agent.home": "/mnt/agent",
    "agent.ca_file": "/ca.pem",
    "artefacts.place": "/mnt/artefacts",
    "link.urls": "https://a.example.com,https://b.example.com:8420",
    "nodes.agent_oldest": "1.2.3",
    "tracing.endpoint": "https://h/v1",
    "mail.public_url": "https://pool.example",
    "mail.sender": "pool@example.com",
    "mail.smtp_host": "smtp.example.com",
    "mail.smtp_port": "2525",
    "mail.smtp_ca_file": "/ca.pem",
    "mail.smtp_username": "pool",
    "mail.smtp_password": "open sesame",
    "artefacts.s3_endpoint": "https://s3.example.com",
    "artefacts.s3_bucket": "artefacts",
    "artefacts.s3_prefix": "pool/",
    "artefacts.s3_access_key": "pool",
    "artefacts.s3_secret_key": "open sesame",
    "secrets.master_key": "A" * 43 + " " + "B" * 42 + "A",
    "secrets.master_key_command": "print-the-key --of pool",
    "secrets.master_key_file": "/mnt/keys/master.key",
}
NUMERIC = [INTEGER, NUMBER, DURATION, SHARE, SHARE_PPM, FACTOR_PPM, CREDITS, POINTS, SIZE, MEMORY]


def names(definition: Definition) -> str:
    return definition.name


def values(definition: Definition) -> st.SearchStrategy[Any]:
    """Valid values, in the unit inside."""
    if definition.name in EXAMPLES:
        return st.just(definition.kind.read(EXAMPLES[definition.name]))
    if definition.kind is SWITCH:
        return st.booleans()
    if isinstance(definition.default, StrEnum):
        return st.sampled_from(type(definition.default))
    if isinstance(definition.default, str):
        return st.just("example")
    between = st.integers if isinstance(definition.default, int) else st.floats
    return between(
        min_value=definition.low, max_value=definition.low + 10**9 if definition.high is None else definition.high
    )


def literal(definition: Definition, value: Any) -> str:
    """The value in TOML: a text for what is spoken, else TOML's own number or boolean."""
    shown = definition.kind.show(value)
    return json.dumps(shown) if definition.kind.spoken else shown


@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("definition", catalogue(), ids=names)
@given(draw=st.data())
def test_every_definition_reads_back_from_file_environment_and_command_line(
    definition: Definition, draw: st.DataObject
) -> None:
    value = draw.draw(values(definition))
    text, key = definition.kind.show(value), definition.name.rpartition(".")[2]
    table = f"[{definition.section}]\n" if definition.section else ""
    toml = tomllib.loads(f"{table}{key} = {literal(definition, value)}")
    for layer, source in [
        (from_file(toml, "f.toml"), SettingSource(SourceKind.FILE, "f.toml")),
        (
            from_environment({definition.environment_name: text}, ()),
            SettingSource(SourceKind.ENVIRONMENT, definition.environment_name),
        ),
        (from_command_line({definition.name: text}), SettingSource(SourceKind.COMMAND_LINE)),
    ]:
        assert read(layer) == ({definition.name: SettingValue(definition, value, source)}, [])


@pytest.mark.parametrize("definition", catalogue(), ids=names)
def test_every_wrong_type_names_the_setting_and_its_place(definition: Definition) -> None:
    key = definition.name.rpartition(".")[2]
    wrong: dict[str, object] = {"deep": {}}
    toml: dict[str, object] = {definition.section: {key: wrong}} if definition.section else {key: [wrong]}
    with pytest.raises(SettingsFault) as caught:
        build(toml=toml, toml_name="f.toml", environment={definition.environment_name: "\0"}, home=HOME)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{definition.name} (file f.toml) ")
    assert second.startswith(f"{definition.name} (environment {definition.environment_name}) ")
    assert all(f"it must be {definition.allowed()}." in sentence for sentence in (first, second))


@pytest.mark.parametrize("definition", [d for d in catalogue() if d.kind in NUMERIC], ids=names)
def test_every_bound_holds_and_a_step_beyond_is_refused(definition: Definition) -> None:
    show = definition.kind.show
    for bound, beyond in [(definition.low, definition.low - 1), (definition.high, (definition.high or 0) + 1)]:
        if bound is not None:
            assert definition.within_bounds(bound)
            with pytest.raises(SettingsFault, match=re.escape(f"{definition.name} (environment ")):
                build(toml={}, toml_name="f", environment={definition.environment_name: show(beyond)}, home=HOME)


def test_no_two_settings_share_a_name() -> None:
    assert len({d.name for d in catalogue()}) == len({d.environment_name for d in catalogue()}) == len(catalogue())
    assert not {d.name for d in catalogue()} & set(sections())


@pytest.mark.parametrize("definition", catalogue(), ids=names)
def test_every_definition_is_whole(definition: Definition) -> None:
    assert re.fullmatch(r"[A-Z`].*[^.]\.", definition.meaning), "a meaning is a sentence"
    assert "|" not in definition.meaning, "a bar would end the cell of the reference's table"
    assert definition.unit or definition.kind not in NUMERIC, "a number has a unit"
    assert definition.name.endswith("_s") == (definition.kind is DURATION), "a duration says so in its name"
    assert definition.default is None or definition.kind not in NUMERIC or definition.within_bounds(definition.default)
    # The fingerprint of a pool is made of these, so they are always there and never secret.
    assert definition.scope is SettingScope.PROCESS or not (definition.optional or definition.secret)


@pytest.mark.parametrize(
    ("kind", "written", "inside"),
    [
        (DURATION, 30, 30.0),
        (DURATION, "30s", 30.0),
        (DURATION, "500ms", 0.5),
        (DURATION, "1.5 h", 5400.0),
        (DURATION, "0.1d", 8640.0),
        (SHARE, "10%", 0.1),
        (SHARE_PPM, 0.1, 100_000),
        (SHARE_PPM, "0.0001%", 1),
        (FACTOR_PPM, "120%", 1_200_000),
        (CREDITS, "0.000001", 1),
        (CREDITS, 0.29, 290_000),
        (CREDITS, 1000, 1_000_000_000),
        (POINTS, 60.0, 600),
        (SIZE, "512MiB", 512 * 1024**2),
        (SIZE, "1.5kB", 1500),
        (MEMORY, "24GiB", 24576),
        (MEMORY, 512, 512),
        (INTEGER, " 7 ", 7),
        (SWITCH, "off", False),
        (CREDITS, "1e19", None),
        (CREDITS, "1e9999", None),
        (INTEGER, "1e3", None),
        (INTEGER, "١", None),
        (DURATION, "٣s", None),
        (SIZE, "1 B B", None),
        (NUMBER, "1%", None),
        (NUMBER, "nan", None),
        (DURATION, "inf", None),
        (SHARE, "", None),
    ],
)
def test_values_are_read_as_people_write_them(kind: SettingKind[Any], written: object, inside: object) -> None:
    value = kind.read(written)
    assert isinstance(value, UnreadableValue) if inside is None else (value, type(value)) == (inside, type(inside))


@given(value=st.floats(min_value=0, max_value=1e12), kind=st.sampled_from([NUMBER, DURATION, SHARE]))
def test_a_shown_number_reads_back(value: float, kind: SettingKind[float]) -> None:
    assert kind.read(kind.show(value)) == value


@given(
    value=st.integers(min_value=0, max_value=10**17),
    kind=st.sampled_from([INTEGER, SHARE_PPM, FACTOR_PPM, CREDITS, POINTS, SIZE, MEMORY]),
)
def test_a_shown_integer_reads_back(value: int, kind: SettingKind[int]) -> None:
    assert kind.read(kind.show(value)) == value


def test_rows_show_every_setting_with_its_source_and_meaning() -> None:
    toml = tomllib.loads("[link]\nheartbeat_s = 60\n[market]\ndefault_hourly = 25.5")
    shown = {row.name: row for row in rows(build(toml=toml, toml_name="f.toml", environment={}, home=HOME))}
    assert list(shown) == [d.name for d in catalogue()]
    assert (shown["link.heartbeat_s"].value, str(shown["link.heartbeat_s"].source)) == ("1m", "file f.toml")
    hourly = shown["market.default_hourly"]
    assert (hourly.value, hourly.unit.split("/")[0]) == ("25.5", "credits")
    assert shown["database_url"].value == "not set"
    assert all(row.meaning for row in shown.values())


def test_the_reference_page_is_the_generated_one() -> None:
    make = "python -c 'from tidemill.core.settings import reference; print(reference(), end=\"\")'"
    assert REFERENCE.read_text(encoding="utf-8") == reference(), f"write it again: {make} > docs/reference/settings.md"
