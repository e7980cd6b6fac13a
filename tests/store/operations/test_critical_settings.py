"""Critical settings as the database remembers them: across starts, operators, processes and roles."""

import asyncio
import secrets
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.operator_rows import operators_of
from tidemill.core.accounts.operator_word import OperatorWordRefusal
from tidemill.core.accounts.roles import name_of_account
from tidemill.core.clock import DAY, HOUR, Instant
from tidemill.core.events.log import LOG_START, RecordedEvent
from tidemill.core.ids import Ids
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings, build, pool_fingerprint
from tidemill.core.settings.critical import SettingChange, SettingChangeRefusal, SettingChangeState
from tidemill.core.settings.sections.trail import TrailSettings
from tidemill.store.accounts import operator_words
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.events import events
from tidemill.store.operations import critical_settings
from tidemill.store.operations.critical_settings import SettingsInForce, in_force

IDS = Ids(secrets.randbits)
BOB, CARL, DORA = (name_of_account(UUID(int=number)) for number in (1, 2, 3))


def configured(**values: str) -> Settings:
    environment = {f"TIDEMILL_{name.upper()}": value for name, value in values.items()}
    return build(toml={}, toml_name="", environment=environment, home=Path("/srv/tidemill")).settings


async def start(urls: DatabaseUrls, by: str = "ann", **values: str) -> SettingsInForce:
    return await in_force(urls.owner, configured(**values), by, IDS)


async def settle(database: Database, name: str, *, by: str, approve: bool = True) -> SettingChange | Refusal:
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        word = await operator_words.read(transaction, by, TrailSettings())
        return await critical_settings.settle_change(
            transaction, name, approve=approve, reason="agreed", word=word, ids=IDS, now=now
        )


async def told(database: Database) -> list[RecordedEvent]:
    async with database.connection() as connection:
        return [one for one in await events.read(connection, LOG_START, 100) if one.kind.startswith("settings.")]


async def changes(database: Database) -> list[SettingChange]:
    async with database.connection() as connection:
        return list(await critical_settings.waiting(connection))


async def long_ago(urls: DatabaseUrls) -> None:
    """Every change waits for two days already."""
    owner = await connect(urls.owner)
    await owner.execute("UPDATE critical_change SET proposed_at = proposed_at - interval '2 days'")
    await owner.close()


async def test_a_change_waits_for_its_delay_and_every_start_agrees_on_that(
    urls: DatabaseUrls, database: Database
) -> None:
    first = await start(urls)
    assert (first.settings, first.waiting) == (configured(), [])
    for _ in range(2):
        waiting = await start(urls, money_commission="15%", money_currency="token")
        assert waiting.settings.money.commission_ppm == 100_000
        assert waiting.settings.money.currency == "token", "what is not critical is as configured"
        assert [(one.name, one.value, one.proposed_by) for one in waiting.waiting] == [
            ("money.commission", "15%", "ann")
        ]
    assert pool_fingerprint(waiting.settings) == pool_fingerprint(configured(money_currency="token"))
    await long_ago(urls)
    ripe = await start(urls, by="bob", money_commission="15%")
    assert (ripe.settings, ripe.waiting) == (configured(money_commission="15%"), [])
    assert await changes(database) == []
    kinds = [one.kind for one in await told(database)]
    assert kinds == ["settings.remembered", "settings.change_proposed", "settings.accepted"]


async def test_two_operators_end_the_wait(urls: DatabaseUrls, database: Database) -> None:
    await operators_of(database, BOB, CARL)
    await start(urls)
    await start(urls, money_commission="15%")
    assert await settle(database, "money.commission", by="ann") is SettingChangeRefusal.OWN_LOGIN_NEEDED
    assert await settle(database, "money.burn", by=BOB) is SettingChangeRefusal.NO_SUCH_CHANGE
    vouched = await settle(database, "money.commission", by=CARL)
    assert isinstance(vouched, SettingChange)
    assert (vouched.state, vouched.vouched_by) == (SettingChangeState.PENDING, CARL)
    assert (await start(urls, money_commission="15%")).settings.money.commission_ppm == 100_000
    assert await changes(database) == [vouched]
    assert await settle(database, "money.commission", by=CARL) is SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED
    approved = await settle(database, "money.commission", by=BOB)
    assert isinstance(approved, SettingChange)
    assert approved.state is SettingChangeState.APPROVED
    assert await settle(database, "money.commission", by=CARL) is SettingChangeRefusal.CHANGE_DECIDED
    assert (await start(urls, money_commission="15%")).settings.money.commission_ppm == 150_000
    first, decided, accepted = (await told(database))[-3:]
    assert (first.body["state"], first.body["reason"], first.body["by"]) == ("vouched", "agreed", CARL)
    assert decided.body == {
        "name": "money.commission",
        "new": "15%",
        "state": "approved",
        "reason": "agreed",
        "by": BOB,
    }
    assert accepted.body["because"] == f"approved by {CARL} and {BOB}"


async def test_a_rejected_change_never_takes_effect_and_may_be_proposed_anew(
    urls: DatabaseUrls, database: Database
) -> None:
    await start(urls)
    await start(urls, money_commission="15%")
    assert isinstance(await settle(database, "money.commission", by="ann", approve=False), SettingChange)
    await long_ago(urls)
    assert (await start(urls, money_commission="15%")).settings == configured()
    assert (await start(urls)).waiting == []
    (again,) = (await start(urls, money_commission="15%")).waiting
    assert again.state is SettingChangeState.PENDING


async def test_a_change_that_was_exchanged_while_an_operator_looked_is_not_approved(
    urls: DatabaseUrls, database: Database
) -> None:
    await start(urls)
    await start(urls, money_commission="15%")
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        (seen,) = await critical_settings.waiting(transaction)
        await start(urls, money_commission="95%")
        row = await critical_settings._SETTLE.row(
            transaction,
            name=seen.name, value=seen.value, state="approved", decided_by=BOB, decided_at=now, reason="agreed",
            vouched_by=CARL, vouched_before=None, approver=BOB, operator_before=now,
        )  # fmt: skip
    assert row is None
    (waiting,) = await changes(database)
    assert (waiting.value, waiting.state) == ("95%", SettingChangeState.PENDING)


async def test_who_has_just_been_given_the_role_is_no_second_operator(urls: DatabaseUrls, database: Database) -> None:
    """Not in core, and not in the database."""
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
    await operators_of(database, BOB)
    await operators_of(database, DORA, since=Instant(now - HOUR))
    await start(urls)
    await start(urls, money_commission="15%")
    assert isinstance(await settle(database, "money.commission", by=BOB), SettingChange)
    for nobody in (DORA, CARL):
        assert await settle(database, "money.commission", by=nobody) is OperatorWordRefusal.OPERATOR_TOO_NEW
        async with database.transaction() as transaction:
            row = await critical_settings._SETTLE.row(
                transaction,
                name="money.commission", value="15%", state="approved", decided_by=nobody, decided_at=now,
                reason="me", vouched_by=BOB, vouched_before=BOB, approver=nobody, operator_before=Instant(now - DAY),
            )  # fmt: skip
        assert row is None


async def test_approval_is_for_the_value_that_was_shown(urls: DatabaseUrls, database: Database) -> None:
    await operators_of(database, BOB, CARL)
    await start(urls)
    await start(urls, money_commission="15%")
    for by in (BOB, CARL):
        await settle(database, "money.commission", by=by)
    assert (await start(urls, money_commission="95%")).settings.money.commission_ppm == 100_000
    (waiting,) = await changes(database)
    assert (waiting.value, waiting.state, waiting.decided_by) == ("95%", SettingChangeState.PENDING, None)
    assert waiting.vouched_by is None


async def test_processes_that_start_at_once_propose_once(urls: DatabaseUrls, database: Database) -> None:
    await asyncio.gather(*(start(urls) for _ in range(5)))
    await asyncio.gather(*(start(urls, money_commission="15%") for _ in range(5)))
    assert [one.kind for one in await told(database)] == ["settings.remembered", "settings.change_proposed"]
    assert len(await changes(database)) == 1


async def test_accepted_values_that_contradict_each_other_give_way_to_what_is_configured(
    urls: DatabaseUrls, database: Database
) -> None:
    await start(urls)
    owner = await connect(urls.owner)
    await owner.execute("UPDATE critical_setting SET value = '95%' WHERE name = 'money.burn'")
    await owner.close()
    changed = await start(urls, money_burn="5%", money_commission="15%")
    assert changed.settings == configured(money_burn="5%")
    assert (await told(database))[-1].body["values"]["money.burn"] == "5%"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE critical_setting SET value = '99%'",
        "DELETE FROM critical_setting",
        "INSERT INTO critical_setting VALUES ('x', 'y', now())",
        "UPDATE critical_change SET value = '99%'",
        "UPDATE critical_change SET proposed_at = now() - interval '2 days'",
        "UPDATE critical_change SET proposed_by = 'nobody'",
        "DELETE FROM critical_change",
        "INSERT INTO critical_change SELECT * FROM critical_change",
        "UPDATE critical_change SET state = 'approved', decided_by = 'ann', decided_at = now(), reason = 'x'",
        "UPDATE critical_change SET state = 'approved'",
        "UPDATE critical_change SET state = 'approved', decided_by = 'account:1', decided_at = now(), reason = 'x'",
        "UPDATE critical_change SET vouched_by = 'operator'",
        "UPDATE critical_change SET state = 'approved', vouched_by = 'account:1', decided_by = 'account:1', "
        "decided_at = now(), reason = 'x'",
    ],
)
async def test_the_program_can_accept_nothing_by_itself(urls: DatabaseUrls, database: Database, statement: str) -> None:
    await start(urls)
    await start(urls, money_commission="15%")
    async with database.connection() as connection:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.CheckViolationError)):
            await connection.execute(statement)


async def test_a_clock_that_went_back_lets_nothing_in_early(urls: DatabaseUrls, database: Database) -> None:
    await start(urls)
    owner = await connect(urls.owner)
    await start(urls, money_commission="15%")
    await owner.execute("UPDATE critical_change SET proposed_at = proposed_at + interval '9 days'")
    await owner.close()
    assert (await start(urls, money_commission="15%")).settings == configured()
    (waiting,) = await changes(database)
    assert waiting.proposed_at > Instant(0)
