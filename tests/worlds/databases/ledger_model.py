"""The ledger as plainly as it can be written, and random batches to try it with. Slow, and shares no code with it."""

from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids, made_at
from tidemill.core.ledger import RULES, AccountKind, Entry, Hold, LedgerAccount, PostingRefusal, Release, Transfer

R = PostingRefusal


@dataclass
class Model:
    """Every number is what the entries so far say it is."""

    accounts: dict[UUID, LedgerAccount]
    frozen: set[UUID] = field(default_factory=set)
    posted: dict[UUID, int] = field(default_factory=dict)
    holds: dict[UUID, tuple[Hold, int]] = field(default_factory=dict)
    answers: dict[UUID, tuple[Entry, PostingRefusal | None]] = field(default_factory=dict)

    def held(self, account_id: UUID) -> int:
        """What is left of the newest holds; `forget` keeps them few."""
        return sum(left for hold, left in self.holds.values() if hold.account_id == account_id)

    def forget(self) -> None:
        """Of holds that are over, the last hundred are enough to be asked about again."""
        over = [hold_id for hold_id, (_, left) in self.holds.items() if left == 0]
        for hold_id in over[:-100]:
            del self.holds[hold_id]

    def available(self, account_id: UUID) -> int:
        return self.posted.get(account_id, 0) - self.held(account_id)

    def post(self, batch: list[Entry], now: Instant) -> list[PostingRefusal | None]:
        refusals: list[PostingRefusal | None] = []
        while len(refusals) < len(batch):
            rest = batch[len(refusals) :]
            length = next((index for index, entry in enumerate(rest, 1) if not entry.linked), len(rest))
            refusals += self.group(rest[:length], now)
        return refusals

    def group(self, group: list[Entry], now: Instant) -> list[PostingRefusal | None]:
        if len(group) > 1:
            known = [entry.id in self.answers for entry in group]
            if not all(known) and (any(known) or len({entry.id for entry in group}) < len(group)):
                return [R.LINK_REPEATED] * len(group)
        late = [not -60 * SECOND <= now - made_at(entry.id) <= 30 * DAY for entry in group]
        if any(late) and not all(entry.id in self.answers for entry in group):
            return [R.ID_OUT_OF_TIME if at == late.index(True) else R.LINK_BROKEN for at in range(len(group))]
        before = (dict(self.posted), dict(self.holds)) if len(group) > 1 else (self.posted, self.holds)
        refusals = [self.one(entry, now) for entry in group]
        fresh = [entry for entry in group if entry.id not in self.answers]
        if fresh and any(refusals):
            self.posted, self.holds = before
            first = next(index for index, refusal in enumerate(refusals) if refusal)
            refusals = [refusals[first] if at == first else R.LINK_BROKEN for at in range(len(group))]
        for entry, refusal in zip(group, refusals, strict=True):
            if refusal is not R.ID_REUSED:
                self.answers.setdefault(entry.id, (entry, refusal))
        return refusals

    def one(self, entry: Entry, now: Instant) -> PostingRefusal | None:
        if entry.id in self.answers:
            before, refusal = self.answers[entry.id]
            return refusal if before == entry else R.ID_REUSED
        refusal = self.refusal(entry, now)
        if refusal is None:
            self.apply(entry)
        return refusal

    def refusal(self, entry: Entry, now: Instant) -> PostingRefusal | None:
        reasons = set[PostingRefusal]()
        if isinstance(entry, Release):
            hold = self.holds.get(entry.hold_id)
            reasons |= {R.UNKNOWN_HOLD} if hold is None else {R.HOLD_OVER} if hold[1] == 0 else set()
        else:
            reasons |= self.movement_reasons(entry, now)
        return next((reason for reason in R if reason in reasons), None)

    def movement_reasons(self, entry: Transfer | Hold, now: Instant) -> set[PostingRefusal]:
        reasons = set[PostingRefusal]()
        sides = [entry.debit_id, entry.credit_id] if isinstance(entry, Transfer) else [entry.account_id]
        if not 1 <= entry.amount_uc <= 10**15:
            reasons.add(R.AMOUNT_OUT_OF_BOUNDS)
        if len(set(sides)) < len(sides):
            reasons.add(R.SAME_ACCOUNT)
        if any(side not in self.accounts for side in sides):
            return reasons | {R.UNKNOWN_ACCOUNT}
        if {self.accounts[side].currency for side in sides} != {entry.currency}:
            reasons.add(R.CURRENCY_MISMATCH)
        if set(sides) & self.frozen:
            reasons.add(R.ACCOUNT_FROZEN)
        if isinstance(entry, Transfer) and entry.hold_id is not None:
            return reasons | self.capture_reasons(entry, now)
        floored = RULES[self.accounts[sides[0]].kind].floored
        if (floored and self.available(sides[0]) < entry.amount_uc) or (isinstance(entry, Hold) and not floored):
            reasons.add(R.INSUFFICIENT_FUNDS)
        return reasons

    def capture_reasons(self, entry: Transfer, now: Instant) -> set[PostingRefusal]:
        assert entry.hold_id
        if entry.hold_id not in self.holds:
            return {R.UNKNOWN_HOLD}
        hold, left = self.holds[entry.hold_id]
        reasons = set[PostingRefusal]()
        if hold.account_id != entry.debit_id:
            reasons.add(R.HOLD_OF_ANOTHER_ACCOUNT)
        if left == 0 or hold.expires_at <= now:
            reasons.add(R.HOLD_OVER)
        if left < entry.amount_uc:
            reasons.add(R.HOLD_TOO_SMALL)
        return reasons

    def apply(self, entry: Entry) -> None:
        if isinstance(entry, Hold):
            self.holds[entry.id] = (entry, entry.amount_uc)
        elif isinstance(entry, Release):
            self.holds[entry.hold_id] = (self.holds[entry.hold_id][0], 0)
        else:
            self.posted[entry.debit_id] = self.posted.get(entry.debit_id, 0) - entry.amount_uc
            self.posted[entry.credit_id] = self.posted.get(entry.credit_id, 0) + entry.amount_uc
            if entry.hold_id:
                hold, left = self.holds[entry.hold_id]
                self.holds[entry.hold_id] = (hold, left - entry.amount_uc)


def some_accounts(world: UUID) -> list[LedgerAccount]:
    """A few accounts of every sort, in two currencies, belonging to one world of a test."""
    owners = [UUID(int=world.int + number) for number in range(4)]
    owned = [
        LedgerAccount(kind, owner) for owner in owners for kind in (AccountKind.CUSTOMER, AccountKind.STAKE_ASSIGNED)
    ]
    others = [
        LedgerAccount(AccountKind.EXTERNAL, name=f"{world}"),
        LedgerAccount(AccountKind.EXTERNAL, name=f"{world}", currency="euro"),
    ]
    return [*owned, *others, LedgerAccount(AccountKind.CUSTOMER, owners[0], currency="euro")]


class Mischief:
    """Makes batches: mostly sensible entries, and every sort of nonsense."""

    def __init__(self, seed: int, accounts: list[LedgerAccount]) -> None:
        self.random = Random(seed)
        self.ids = Ids(self.random.getrandbits)
        self.accounts = accounts
        self.past: list[Entry] = []
        self.holds: list[Hold] = []

    def batch(self, now: Instant) -> list[Entry]:
        made = [self.entry(now) for _ in range(self.random.randint(1, 400))]
        self.past = (self.past + made)[-500:]
        self.holds = (self.holds + [entry for entry in made if isinstance(entry, Hold)])[-40:]
        return made

    def entry(self, now: Instant) -> Entry:
        draw = self.random.random()
        if draw < 0.04 and self.past:
            old = self.random.choice(self.past)
            return old if self.random.random() < 0.7 else replace(old, cause="another cause")
        return replace(self.fresh(now, draw), linked=self.random.random() < 0.1)

    def fresh(self, now: Instant, draw: float) -> Entry:
        random = self.random
        entry_id = self.ids.new(now) if random.random() > 0.01 else self.strange_id(now)
        hold = random.choice(self.holds) if self.holds else None
        if draw < 0.20:
            return Hold(
                entry_id,
                self.account(),
                self.amount(),
                self.currency(),
                Instant(now + random.randint(0, 20) * SECOND),
                "c",
            )
        if draw < 0.35 and hold:
            return Release(entry_id, hold.id if random.random() > 0.05 else entry_id, "c")
        if draw < 0.55 and hold:
            debit = hold.account_id if random.random() > 0.05 else self.account()
            return Transfer(entry_id, debit, self.account(), self.amount(), self.currency(), "capture", "c", hold.id)
        debit = self.accounts[8].id if random.random() < 0.3 else self.account()
        return Transfer(entry_id, debit, self.account(), self.amount(), self.currency(), "k", "c")

    def strange_id(self, now: Instant) -> UUID:
        return Ids(self.random.getrandbits).new(Instant(now + self.random.choice((-40, 1)) * DAY))

    def account(self) -> UUID:
        return self.random.choice(self.accounts).id if self.random.random() > 0.02 else self.ids.new(Instant(0))

    def amount(self) -> int:
        return (
            self.random.randint(1, 60)
            if self.random.random() > 0.02
            else self.random.choice((-2, 0, 10**15 + 1, 2**70))
        )

    def currency(self) -> str:
        return "credit" if self.random.random() > 0.05 else "euro"
