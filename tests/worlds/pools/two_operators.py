"""Two operators with an account each, as two-person rules want them."""

from dataclasses import dataclass
from pathlib import Path

from tests.worlds.pools.people import Key, OpenSession, Person, people_of
from tests.worlds.pools.pool import Running
from tidemill.cli.client.credentials import CredentialsFile, StoredTokens
from tidemill.core.accounts.roles import Role, Scope, name_of_account


@dataclass(frozen=True)
class Operator:
    person: Person
    session: OpenSession
    key: Key

    @property
    def name(self) -> str:
        return name_of_account(self.person.id)

    @property
    def bearer(self) -> dict[str, str]:
        return self.session.bearer

    def log_in(self, running: Running, config: Path) -> dict[str, str]:
        """The environment of commands in which they are logged in, as `tidemill login` leaves it."""
        kept = CredentialsFile(config / "tidemill" / "credentials", running.url)
        tokens = StoredTokens(
            url=running.url,
            address=self.person.address,
            session_id=str(self.session.id),
            session_expires_at="2099-01-01T00:00:00Z",
            access_token=self.session.access_token,
            refresh_token=self.session.refresh_token,
        )
        with kept.locked():
            kept.write(tokens)
        return {"XDG_CONFIG_HOME": str(config)}


def two_operators(running: Running) -> tuple[Operator, Operator]:
    """Two new operators of a pool that is set up."""
    with people_of(running) as people:
        persons = [people.person(Role.OPERATOR, second_factor=True) for _ in range(2)]
        first, second = (
            Operator(person, people.session(person), people.key(person, Role.OPERATOR, Scope.POOL_WRITE))
            for person in persons
        )
    return first, second


def second_account(running: Running, operator: Operator) -> OpenSession:
    """A session of another account to which an operator gives the role, over HTTP."""
    with people_of(running) as people:
        person = people.person(second_factor=True)
        path = f"/api/v1/admin/accounts/{person.id}/roles"
        given = running.post(path, json={"roles": ["operator"], "reason": "helps me"}, headers=operator.bearer)
        assert given.status_code == 200, given.text
        return people.session(person)
