"""All commands, with where each is. So the page of help needs none of them, and a call needs only its own module.

A summary is the first paragraph of the command's docstring, or of its group's help; `tests/cli` compares them.
"""

from dataclasses import dataclass
from enum import StrEnum


class Section(StrEnum):
    """Under which title a command stands in the root's page of help."""

    WORK = "Work"
    NODES = "Nodes"
    MONEY = "Money"
    POOL = "Pool"
    ACCOUNT = "Account"
    DEVELOP = "Develop"


@dataclass(frozen=True)
class TableEntry:
    """A command: its name, the module and the attribute that hold it, and what it does in a line."""

    name: str
    target: str
    section: Section
    summary: str
    hidden: bool = False


_CLI = "tidemill.cli"


def _listed(section: Section, *rows: tuple[str, str, str]) -> list[TableEntry]:
    return [TableEntry(name, f"{_CLI}.{target}", section, summary) for name, target, summary in rows]


COMMANDS: dict[str, TableEntry] = {
    entry.name: entry
    for entry in (
        *_listed(
            Section.WORK,
            ("run", "jobs.run:app", "Order a job, wait for it and fetch its result, in one line."),
            ("jobs", "jobs.jobs:app", "Jobs: order, quote, confirm, follow, fetch the result."),
            ("kinds", "jobs.kinds:kinds", "The kinds of work, their parameters, and an example each."),
            ("artefacts", "artefacts.artefacts:app", "Inputs, models and results that you keep in the pool."),
            ("models", "artefacts.models:app", "The models of the pool: list, show, add, remove."),
            ("proof", "jobs.proof:app", "Proofs of products of matrices: verify."),
        ),
        *_listed(
            Section.NODES,
            ("nodes", "nodes.nodes:app", "Your machines in the pool."),
            ("agent", "agent.agent:app", "This machine as a node of a pool: join, run, rest, leave."),
        ),
        *_listed(
            Section.MONEY,
            ("ledger", "ledger.ledger:app", "The pool's books: accounts, holds, adjustments, archives."),
        ),
        *_listed(
            Section.POOL,
            ("up", "operations.pool:up", "Start this machine's pool, with its database."),
            ("down", "operations.pool:down", "Stop the pool of this machine, in order."),
            ("control", "operations.pool:control", "Add a control process to this machine's pool."),
            ("status", "operations.pool:status", "Is the pool that commands ask running and well?"),
            ("top", "jobs.top:top", "Watch the pool: what is for sale, what waits, what runs."),
            (
                "events",
                "events.events:events",
                "Show the pool's events in words, oldest first.",
            ),
            ("config", "operations.config:config", "Show this machine's settings and where each came from."),
            ("admin", "operations.admin:app", "Run this machine's pool: switches, settings, accounts."),
            ("trust", "trust.trust:app", "On this machine's pool, decide what nobody else can."),
            ("db", "operations.database:app", "This machine's database: shell, backup, restore, check."),
            ("mail", "operations.mail:app", "This machine's letters: list, read, send again, test."),
            ("audit", "events.audit:app", "The audit trail of this machine's pool."),
        ),
        *_listed(
            Section.ACCOUNT,
            ("login", "accounts.account:login", "Log in to a pool."),
            ("logout", "accounts.account:logout", "End this session and remove its tokens from the disk."),
            ("whoami", "accounts.account:whoami", "Who am I, at which pool, in which roles?"),
            ("profiles", "accounts.profiles:app", "Whom commands can act as: list, use, remove."),
            ("account", "accounts.own_roles:app", "Your account: its roles, and taking on another one."),
            ("keys", "accounts.api_keys:app", "Your API keys: list, create, rotate, revoke."),
            ("sessions", "accounts.account:sessions_app", "Where you are logged in: list your sessions, end them."),
            ("logins", "accounts.account:logins", "List the tries to log in to your account, newest first."),
            ("second-factor", "accounts.second_factor:app", "An authenticator for your account: on, off, codes."),
            ("setup", "accounts.registration:set_up", "Make the first operator's account of a new pool."),
            ("register", "accounts.registration:register", "Ask for an account."),
            ("confirm", "accounts.registration:confirm", "Prove that an address is yours, with its letter."),
            ("forgot", "accounts.registration:forgot", "Ask for a letter that lets you set another password."),
            ("reset", "accounts.registration:reset", "Set another password, with the code in the letter."),
        ),
        *_listed(
            Section.DEVELOP,
            (
                "completion",
                "terminal.completion:completion",
                "Print the script that lets your shell complete words.",
            ),
            ("sim", "sim.sim:app", "Try the pool's rules in simulated worlds."),
        ),
        TableEntry(
            "complete",
            f"{_CLI}.terminal.completion:complete",
            Section.DEVELOP,
            "Say what the last of the words may become, for the scripts of shells.",
            hidden=True,
        ),
    )
}
