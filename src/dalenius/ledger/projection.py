"""What the history says, kept in memory: the one thing that decisions are made from.

Budgets, allotments, totals, questions, grants, suspensions, tokens: everything that decides who may ask, what it costs
and what they get stands here, built from entries that were proved one by one (see `proof`). The tables beside the
history say the same and are written along, but are never believed: who can write the file can write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from dalenius.accounting.event_json import from_json
from dalenius.accounting.orders import SampledLoss
from dalenius.errors import DaleniusError, NotAllowedError, UnknownTableError
from dalenius.ledger import publications, sharing, tokens
from dalenius.ledger.budgets import Balance, Budget, Filter
from dalenius.ledger.chain import Entry
from dalenius.ledger.publications import PublishedRows
from dalenius.ledger.requests import OWNER
from dalenius.ledger.suspensions import Standings
from dalenius.ledger.tokens import Token

HASH = 32  # bytes
# Entries that change what is decided; the others are only counted, and read when they are asked for.
KINDS = frozenset({"budget", "allotment", "epoch", "charge", "answer", "failure", "grant"}) | frozenset(
    {"suspension", "note", "token", "publication"}
)


class BrokenRuleError(Exception):
    """An entry that the ledger would not have written."""


@dataclass(slots=True)
class ChargedQuestion:
    """A charged question: what was paid for it, and what became of it."""

    number: int
    dataset: str
    key: str
    analyst: str
    epsilon: float
    delta: float
    rho: float | None
    units: tuple[int, int]
    periods: tuple[str, ...]
    epoch: int
    shares: int | None = None  # the charge of another analyst's answer, from which alone this one is made
    state: str = "claimed"
    answer: int | None = None  # the entry that records the release
    release: str = ""  # SHA-256
    sampled: SampledLoss | None = None  # sampled noise: each total pays what it costs there, and ``units`` is the most

    @property
    def terms(self) -> dict[str, Any]:
        """What its charge says about who asked what, at which price."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "key": self.key,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "periods": list(self.periods),
            **({"epoch": self.epoch} if self.epoch else {}),
            **({"shares": self.shares} if self.shares is not None else {}),
        }


@dataclass
class Projection:
    """The state after so many entries."""

    head: bytes = b""  # the hash of the last entry; before the first, the origin
    hashes: bytearray = field(default_factory=bytearray)  # of every entry, one after the other
    kinds: dict[str, list[int]] = field(default_factory=dict)  # the numbers of the entries of each kind
    budgets: dict[str, Budget] = field(default_factory=dict)
    allotments: dict[tuple[str, str], float] = field(default_factory=dict)
    totals: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    sampled: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)  # the questions in a total that were
    epochs: dict[str, int] = field(default_factory=dict)
    questions: dict[int, ChargedQuestion] = field(default_factory=dict)
    asked: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # questions by data set and key
    grants: dict[tuple[int, str], int] = field(default_factory=dict)
    retries: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    standings: Standings = field(default_factory=Standings)
    tokens: dict[str, tuple[Token, str]] = field(default_factory=dict)  # by id, with the hash of its text
    publications: list[PublishedRows] = field(default_factory=list)  # rows that left without a guarantee

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self.hashes) // HASH

    def hash_of(self, number: int) -> bytes:
        """The hash of an entry, as it was when it was proved."""
        return bytes(self.hashes[(number - 1) * HASH : number * HASH])

    def asked_before(self, dataset: str, key: str) -> Iterator[ChargedQuestion]:
        """All charged questions of one meaning, oldest first."""
        for number in self.asked.get((dataset, key), ()):
            yield self.questions[number]

    def budget_of(self, dataset: str) -> Budget:
        """The budget of a data set."""
        budget = self.budgets.get(dataset)
        if budget is None:
            raise UnknownTableError(
                f"There is no data set {dataset!r}.",
                why="No budget was ever recorded for it.",
                fix="Run 'dalenius tables' for those there are.",
            )
        return budget

    def allotment_of(self, dataset: str, analyst: str) -> float:
        """The ε that an analyst may spend; the owner, all of it."""
        if analyst == OWNER:
            return self.budget_of(dataset).epsilon
        allotted = self.allotments.get((dataset, analyst))
        if allotted is None:
            raise NotAllowedError(
                f"Analyst {analyst!r} has no allotment in {dataset!r}.",
                why="Who may ask, and how much, is the owner's decision.",
                fix="Ask the owner for an allotment.",
            )
        return float(allotted)

    def spent(self, dataset: str, period: str, analyst: str) -> tuple[tuple[int, int], tuple[SampledLoss, ...]]:
        """What is spent of a total, for its filter: ``analyst`` '' is the whole data set.

        A total counts a question with sampled noise at the most it may cost. What it does cost depends on the order of
        the filter, and so on its cap, which may have been changed since: it is taken out, and handed over as it is.
        """
        place = dataset, period, analyst
        loss, delta, _ = self.totals.get(place, (0, 0, 0))
        found = [self.questions[number] for number in self.sampled.get(place, ())]
        losses = tuple(each.sampled for each in found if each.sampled is not None)
        return (loss - sum(each.units[0] for each in found), delta), losses

    def filter_of(self, dataset: str, period: str, analyst: str, cap: float) -> Filter:
        """The filter of a total, as it stands: ``analyst`` '' is the whole data set."""
        return self.budget_of(dataset).filter(cap, *self.spent(dataset, period, analyst))

    def left(self, dataset: str, analyst: str, period: str) -> tuple[float, float]:
        """The largest ε and δ that one more question may type; an allotment never buys more than there is."""
        return _left(self._passed(dataset, analyst, period))

    def balance(self, dataset: str, analyst: str, period: str) -> Balance:
        """What a data set ('') or an analyst has spent and has left."""
        budget, cap = self.budget_of(dataset), self.allotment_of(dataset, analyst)
        passed = self._passed(dataset, analyst, period)
        own, charges = passed[-1], self.totals.get((dataset, period, analyst), (0, 0, 0))[2]
        epsilon = own.spent_epsilon if own.sampled else None
        return Balance(budget, cap, own.spent, *_left(passed), charges, period, epsilon)

    def _passed(self, dataset: str, analyst: str, period: str) -> list[Filter]:
        """The filters that an analyst's question must pass, the own one last."""
        whose = dict.fromkeys(("", analyst))
        return [self.filter_of(dataset, period, each, self.allotment_of(dataset, each)) for each in whose]

    def published(self, dataset: str) -> tuple[PublishedRows, ...]:
        """What was published of the people that a data set is about now, oldest first."""
        epoch = self.epochs.get(dataset, 0)
        return tuple(each for each in self.publications if (each.dataset, each.epoch) == (dataset, epoch))

    def keep(self, question: ChargedQuestion) -> None:
        """A charged question, where it is looked for."""
        self.questions[question.number] = question
        self.asked.setdefault((question.dataset, question.key), []).append(question.number)

    def add(self, entry: Entry) -> None:
        """The next entry, proved; raises `BrokenRuleError` if it makes no sense here."""
        try:
            self._follow(entry)
        except (KeyError, TypeError, ValueError, DaleniusError):
            raise BrokenRuleError("It refers to what is not there, or is malformed.") from None
        self.kinds.setdefault(entry.kind, []).append(entry.number)
        self.hashes += entry.hash
        self.head = entry.hash

    def _follow(self, entry: Entry) -> None:
        if entry.kind in KINDS:
            self._apply(entry, entry.data)

    def _apply(self, entry: Entry, data: dict[str, Any]) -> None:
        match entry.kind:
            case "budget":
                after = Budget.from_dict(data["budget"])
                if data["dataset"] in self.budgets:
                    self.budgets[data["dataset"]].check_change(after)
                self.budgets[data["dataset"]] = after
            case "allotment" if data["epsilon"] == 0:
                self.allotments.pop((data["dataset"], data["analyst"]), None)
            case "allotment":
                require(data["dataset"] in self.budgets, "The data set has no budget.")
                self.allotments[data["dataset"], data["analyst"]] = data["epsilon"]
            case "epoch":
                self._begin(data["dataset"], data["epoch"], data["reason"])
            case "charge":
                self._charge(entry.number, data)
            case "answer":
                question = self._in_state("claimed", data["charge"])
                self._check_answer(question, data)
                question.state, question.answer, question.release = "answered", entry.number, str(data["release"])
            case "failure":
                self._in_state("claimed", data["charge"]).state = "failed"
            case "grant":
                self._grant(entry.number, data)
            case "suspension" | "note":
                self.standings.follow(entry)
            case "token":
                tokens.follow(self.tokens, entry)
            case "publication":
                found = publications.read_entry(entry)
                if found is not None:
                    self.publications.append(found)

    def _begin(self, dataset: str, epoch: int, reason: str) -> None:
        """New people: what was spent on those before is not theirs."""
        require(dataset in self.budgets, "The data set has no budget.")
        require(epoch == self.epochs.get(dataset, 0) + 1, "It skips or repeats an epoch.")
        require(bool(reason), "It gives no reason.")
        self.epochs[dataset] = epoch
        self.totals = {place: spent for place, spent in self.totals.items() if place[0] != dataset}
        self.sampled = {place: numbers for place, numbers in self.sampled.items() if place[0] != dataset}

    def _charge(self, number: int, data: dict[str, Any]) -> None:
        loss, delta = (int(each) for each in data["units"])
        question = ChargedQuestion(
            number,
            intern(data["dataset"]),
            data["key"],
            intern(data["analyst"]),
            data["epsilon"],
            data["delta"],
            data["rho"],
            (loss, delta),
            tuple(map(intern, data["periods"])),
            data.get("epoch", 0),
            data.get("shares"),
            sampled=SampledLoss(from_json(data["event"]), data["delta"]) if "losses" in data else None,
        )
        self._check_charge(question, data)
        if question.shares is not None:
            why = sharing.broken(question.terms, self._in_state("answered", question.shares).terms)
            require(why is None, why or "")
            require(question.sampled is None, "It samples units for an answer that is made from another.")
        self._spend(question, sharing.payers(data))
        self._remember(data, number)
        self.keep(question)

    def _grant(self, number: int, data: dict[str, Any]) -> None:
        question, place = self._in_state("answered", data["charge"]), (data["charge"], data["analyst"])
        require(question.release == data["release"], "It grants another release.")
        require(place not in self.grants, "It grants the same answer twice.")
        self._spend(question, (data["analyst"],))
        self._remember(data, data["charge"])
        self.grants[place] = number

    def _check_charge(self, question: ChargedQuestion, data: dict[str, Any]) -> None:
        """Whether the price is right: looked at by `verify`, since an entry that is proved was priced by us."""

    def _check_answer(self, question: ChargedQuestion, data: dict[str, Any]) -> None:
        """Whether the release was made at the price that was paid."""
        made = data.get("epsilon", question.epsilon), data.get("delta", question.delta)
        require(made == (question.epsilon, question.delta), "Its release was made at another price than was charged.")

    def _spend(self, question: ChargedQuestion, totals: tuple[str, ...]) -> None:
        """What the question costs, added to the totals of these analysts ('' is the whole data set)."""
        dataset, (loss, delta) = question.dataset, question.units
        require(question.epoch == self.epochs.get(dataset, 0), "It was charged to other people.")
        for period in question.periods:
            for analyst in totals:
                before = self.totals.get((dataset, period, analyst), (0, 0, 0))
                self._check_room(question, period, analyst)
                self.totals[dataset, period, analyst] = before[0] + loss, before[1] + delta, before[2] + 1
                if question.sampled is not None:
                    self.sampled.setdefault((dataset, period, analyst), []).append(question.number)

    def _check_room(self, question: ChargedQuestion, period: str, analyst: str) -> None:
        """Whether it fitted into what was left: looked at by `verify`."""

    def _remember(self, data: dict[str, Any], question: int) -> None:
        """A request that its client named is paid for once."""
        if "retry" in data:
            key, body = data["retry"]
            require((data["analyst"], key) not in self.retries, "It pays for the same request twice.")
            self.retries[data["analyst"], key] = body, question

    def _in_state(self, state: str, number: int) -> ChargedQuestion:
        question = self.questions[number]
        require(question.state == state, f"The question was not {state} then.")
        return question


def _left(guards: list[Filter]) -> tuple[float, float]:
    return min(each.remaining_epsilon for each in guards), min(each.remaining_delta for each in guards)


def require(holds: bool, why: str) -> None:
    """A rule that every entry keeps."""
    if not holds:
        raise BrokenRuleError(why)
