"""Every event as a sentence: one table, for the terminal and for the pool's pages.

Whoever reads a sentence may read the event: it says nothing that the event does not. Another version may have written
the event, so a field may be missing or differ in form; then, and for unknown kinds, its names and values are shown.
Objects are named by the last eight digits of their ids, which every command takes.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tidemill.core.clock import SECOND
from tidemill.core.events import node_sentences
from tidemill.core.events.node_sentences import EventBody, plain
from tidemill.core.ids import short_id
from tidemill.core.money import credits_of

_DIGEST_DIGITS = 12


def sentence(kind: str, body: EventBody) -> str:
    """One event of the pool as a sentence."""
    if kind in node_sentences.TABLE:
        text = node_sentences.sentence({"kind": kind, "body": body})
        about_node = kind.startswith("node.") and body.get("node_id")
        return f"Node {short_id(str(body['node_id']))}: {text}" if about_node else text[:1].upper() + text[1:]
    as_sentence = _SENTENCES.get(kind)
    try:
        text = as_sentence(body) if as_sentence else plain(kind, body)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return plain(kind, body)
    return text[:1].upper() + text[1:] if as_sentence else text


def _account(body: EventBody) -> str:
    return f"Account {short_id(body['account_id'])}"


def _job(body: EventBody) -> str:
    return f"Job {short_id(body['job_id'])}"


def _node(body: EventBody) -> str:
    return f"Node {short_id(body['node_id'])}"


def _process(body: EventBody) -> str:
    return f"Control process {short_id(body['process_id'])}"


def _by(body: EventBody) -> str:
    """Who did it: a name as the pool knows it, an account by its short id."""
    who = str(body["by"])
    return f"account {short_id(who)}" if who.startswith("account:") else who


def _reason(body: EventBody) -> str:
    return f" Reason: {body['reason']}" if body["reason"] else ""


def _of(count: int, one: str) -> str:
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def _credits(amount_uc: int) -> str:
    return f"{credits_of(amount_uc)} credits"


def _bytes(size_bytes: int) -> str:
    if size_bytes >= 2**20:
        return f"{size_bytes / 2**20:,.1f} MiB"
    return f"{size_bytes / 2**10:,.1f} KiB" if size_bytes >= 2**10 else _of(size_bytes, "byte")


def _moment(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / SECOND, UTC):%Y-%m-%d %H:%M}"


def _counts(body: EventBody) -> str:
    """How tasks ended, without those that did not."""
    ends = [f"{body[end]:,} {end}" for end in ("completed", "failed", "cancelled") if body.get(end)]
    return ", ".join(ends) or "none"


def _quoted(body: EventBody) -> str:
    low, high = credits_of(body["low_uc"]), credits_of(body["high_uc"])
    price = f"{high} credits" if low == high else f"{low} to {high} credits"
    return f"{_job(body)} is quoted: {body['work']}, {_of(body['tasks'], 'task')}, {price}."


def _extended(body: EventBody) -> str:
    until, budget_uc = body["deadline_at_us"], body["budget_uc"]
    parts = [f"time until {_moment(until)}" if until else "", f"a budget of {_credits(budget_uc)}" if budget_uc else ""]
    return f"{_job(body)} has {' and '.join(filter(None, parts)) or 'what it had'}."


def _ended(body: EventBody) -> str:
    return f"{_job(body)} is {body['state']}: tasks {_counts(body)}; it cost {_credits(body['spent_uc'])}."


def _artefact(body: EventBody) -> str:
    return f"Artefact {short_id(body['artefact_id'])} ({body['name']})"


def _kyc(body: EventBody) -> str:
    return f"{_account(body)} is {body['state']} as a provider, by {_by(body)}.{_reason(body)}"


def _key_made(body: EventBody) -> str:
    instead = f", instead of key {short_id(body['replaces'])}" if body["replaces"] else ""
    return f"{_account(body)} made the API key {body['name']} as {body['role']}{instead}."


def _switch(body: EventBody) -> str:
    what = "everything" if body["switch"] == "all" else body["switch"]
    did = f"stopped {what}" if body["stopped"] else f"started {what} again"
    return f"{_by(body)} {did}.{_reason(body)}"


def _backup(body: EventBody) -> str:
    missing = f" {_of(body['missing'], 'artefact')} missing in storage." if body["missing"] else ""
    artefacts = _of(body["artefacts"], "artefact")
    return f"The backup {body['file']} was made ({_bytes(body['size_bytes'])}, {artefacts}).{missing}"


def _times(body: EventBody) -> str:
    return "" if body["times"] == 1 else f", {body['times']:,} times"


def _login_failed(body: EventBody) -> str:
    who = f" as account {short_id(body['account_id'])}" if body["account_id"] else ""
    return f"Somebody at {body['address']} could not log in{who}: {_words(body['result'])}."


def _decided(body: EventBody) -> str:
    return f"{_by(body)}: {body['name']} = {body['new']} is {body['state']}.{_reason(body)}"


def _remembered(body: EventBody) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in sorted(body["values"].items()))
    return f"The pool remembers these critical settings: {values}."


def _words(code: str) -> str:
    return str(code).replace("_", " ")


def _has(body: EventBody, name: str, yes: str, no: str) -> str:
    return yes if body[name] else no


_SENTENCES: Mapping[str, Callable[[EventBody], str]] = {
    "account.address_changed": lambda body: f"{_account(body)} has another e-mail address.",
    "account.blocked": lambda body: (
        f"{_account(body)} was {_has(body, 'blocked', 'blocked', 'unblocked')} by {_by(body)}.{_reason(body)}"
    ),
    "account.deleted": lambda body: f"{_account(body)} was deleted by its owner.",
    "account.kyc_changed": _kyc,
    "account.made": lambda body: f"{_account(body)} was made: {', '.join(body['roles'])}.",
    "account.password_changed": lambda body: f"{_account(body)} has another password ({_words(body['how'])}).",
    "account.recovery_code_used": lambda body: (
        f"{_account(body)} logged in with a recovery code; {body['left']} are left."
    ),
    "account.roles_changed": lambda body: (
        f"{_account(body)} is {', '.join(body['roles']) or 'without a role'} now, by {_by(body)}.{_reason(body)}"
    ),
    "account.second_factor_changed": lambda body: (
        f"{_account(body)}: second factor {_words(body['what'])}, by {_by(body)}."
    ),
    "artefact.deleted": lambda body: f"{_artefact(body)} was deleted by its owner.",
    "artefact.expired": lambda body: f"{_artefact(body)} was deleted, because nobody paid for keeping it.",
    "artefact.made": lambda body: f"{_artefact(body)} is there: {body['purpose']}, {_bytes(body['size_bytes'])}.",
    "artefact.removed": lambda body: f"{_artefact(body)} was removed by {_by(body)}.{_reason(body)}",
    "attempts.paid": lambda body: (
        f"{_account(body)} was paid {_credits(body['paid_uc'])} for {_of(body['count'], 'attempt')}."
    ),
    "audit.head_published": lambda body: (
        f"The audit trail has {_of(body['number'], 'line')}; its head is {body['sha256'][:_DIGEST_DIGITS]}…"
    ),
    "job.confirmed": lambda body: (
        f"{_job(body)} is confirmed: {_of(body['tasks'], 'task')}, {_credits(body['held_uc'])} held."
    ),
    "job.ended": _ended,
    "job.extended": _extended,
    "job.quoted": _quoted,
    "key.made": _key_made,
    "key.revoked": lambda body: f"{_account(body)} revoked the API key {body['name']}.",
    "ledger.account_frozen": lambda body: (
        f"{_by(body)} {_has(body, 'frozen', 'froze', 'unfroze')} the ledger account {short_id(body['account_id'])}."
        f"{_reason(body)}"
    ),
    "ledger.adjustment_proposed": lambda body: (
        f"{_by(body)} proposed the adjustment {short_id(body['adjustment_id'])} of {credits_of(body['amount_uc'])} "
        f"{body['currency']}.{_reason(body)}"
    ),
    "ledger.adjustment_settled": lambda body: (
        f"Adjustment {short_id(body['adjustment_id'])} was {body['state']} by {_by(body)}."
    ),
    "ledger.archived": lambda body: f"{body['month']} was archived: {body['entries']:,} entries in {body['file']}.",
    "ledger.posted": lambda body: f"The ledger posted {body['posted']:,} and refused {body['refused']:,}.",
    "mail.failed": lambda body: f"Letter {short_id(body['mail_id'])} ({body['letter']}) was given up: {body['cause']}",
    "model.added": lambda body: f"The model {body['name']} was added by {_by(body)} (licence {body['licence']}).",
    "model.removed": lambda body: f"The model {body['name']} was removed by {_by(body)}.",
    "pool.authorisation_failed": lambda body: (
        f"{body['caller']} at {body['address']} was refused {body['route']}{_times(body)}: {_words(body['refusal'])}."
    ),
    "pool.backup_failed": lambda body: f"The backup failed and is tried again: {body['cause']}",
    "pool.backup_made": _backup,
    "pool.clock_alarm": lambda body: (
        f"The database's clock {_words(body['observation'])}, off by {body['difference_s']:.3g} s."
    ),
    "pool.created": lambda body: f"The pool began, with Tidemill {body['version']}.",
    "pool.deaf": lambda body: (
        f"Nothing is heard of {_of(body['nodes'], 'node')} of {_of(body['owners'], 'owner')}: the fault is the pool's."
    ),
    "pool.hears_again": lambda _: "The pool hears nodes again.",
    "pool.keys_rotated": lambda body: f"{_by(body)} changed the keys of the pool's secrets.",
    "pool.restored": lambda body: f"The database was restored from {body['source']}; what came later is gone.",
    "pool.set_up": lambda body: f"The pool was set up: {_account(body).lower()} is its first operator.",
    "pool.switch_thrown": _switch,
    "process.lost": lambda body: f"{_process(body)} went silent and counts as lost.",
    "process.returned": lambda body: f"{_process(body)} is back.",
    "process.started": lambda body: f"{_process(body)} started on {body['host']}, version {body['version']}.",
    "process.stopped": lambda body: f"{_process(body)} stopped in order.",
    "session.began": lambda body: f"{_account(body)} logged in from {body['address']}.",
    "session.ended": lambda body: (
        f"{_account(body)}: {_of(len(body['sessions']), 'session')} ended ({_words(body['why'])})."
    ),
    "session.login_failed": _login_failed,
    "session.moved": lambda body: f"{_account(body)}: a session goes on from {body['address']}.",
    "settings.accepted": lambda body: (
        f"{body['name']} is {body['new']} now, and was {body['old']} ({_words(body['because'])})."
    ),
    "settings.change_decided": _decided,
    "settings.change_proposed": lambda body: (
        f"{_by(body)} wants {body['name']} = {body['new']} instead of {body['old']}; it waits."
    ),
    "settings.change_withdrawn": lambda body: f"{_by(body)} no longer wants {body['name']} = {body['new']}.",
    "settings.remembered": _remembered,
    "storage.unpaid": lambda body: (
        f"{_account(body)} cannot pay for the {_bytes(body['kept_bytes'])} that it keeps; they are deleted on "
        f"{_moment(body['expires_at'])}."
    ),
    "tasks.ended": lambda body: f"{_job(body)}: tasks {_counts(body)}.",
    "tasks.placed": lambda body: f"{_job(body)}: {_of(body['count'], 'task')} placed on {_of(body['nodes'], 'node')}.",
}
