"""Frequent texts that nobody listed beforehand (SPEC P6): prefixes are extended, one round after the other.

Who reports draws one of the rounds, and reports once, in that round, with the full ε. Round r asks for the first r·step
bytes of the text: which of the candidates they are, or none of them. Candidates are the prefixes that were frequent in
the round before, each with every extension; a byte 0 stands for "the text has ended".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.local import coins
from dalenius.local.estimators.frequencies import estimate, quantile
from dalenius.local.randomisers.hadamard import Hadamard
from dalenius.local.randomisers.randomiser import sized
from dalenius.local.tallies import Tally

_END = 0
_MOST_CANDIDATES = 2**22
LOWER_CASE = b"abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class PrefixPlan:
    """How the search goes: public, and the same for collector and devices.

    Guarantee:
        Every person sends one report, of a Hadamard response with ε, in a round that secure bits choose. Which
        candidates are asked for follows from other people's reports alone, and whatever they are, a report is
        ε-private; so is everything that is made of the reports.

    Assumes:
        Everybody reports in one round only. `symbols` and `length` are chosen without looking at anybody's text. A text
        with other bytes is no candidate's continuation, and is reported as none of them.

    References:
        Bassily, Nissim, Stemmer & Thakurta (2017), "Practical locally private heavy hitters" (TreeHist); Wang, Li & Jha
        (2018), "Locally differentially private heavy hitter identification" (prefix extension).

    Attributes:
        epsilon: Of each person's one report.
        length: How many bytes of a text are found at most; of texts that are not shorter, the beginning is found.
        symbols: The bytes that texts are made of; `bytes(range(1, 256))` is every UTF-8 text.
        step: By how many bytes a prefix grows in a round.
        keep: How many prefixes go on at most: more than 1/`smallest` never helps.
        level: The chance that any text is found that nobody holds.

    >>> plan = PrefixPlan(epsilon=3.0, length=8, keep=20, step=1)
    >>> plan.rounds, plan.most_candidates, round(plan.smallest(1_000_000), 4)
    (8, 540, 0.0091)
    """

    epsilon: float
    length: int = 12
    symbols: bytes = LOWER_CASE
    step: int = 2
    keep: int = 32
    level: float = 0.05

    def __post_init__(self) -> None:
        settled: dict[str, Any] = {
            "epsilon": parameters.epsilon(self.epsilon),
            "length": sized(self.length, "length", least=1, most=256),
            "step": sized(self.step, "step", least=1, most=4),
            "keep": sized(self.keep, "keep", least=1, most=2**16),
            "symbols": bytes(sorted(set(self.symbols))),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if not self.symbols or _END in self.symbols:
            raise InputError(
                "symbols must be bytes other than 0, at least one.",
                why="A byte 0 marks the end of a text.",
                fix="Give those that texts are made of, such as b'abc'.",
            )
        if not 0 < self.level < 1:
            raise InputError("The level must lie between 0 and 1.", why="It is a chance.", fix="0.05 is usual.")
        if self.most_candidates > _MOST_CANDIDATES:
            raise InputError(
                f"A round would have {self.most_candidates:,} candidates.",
                why=f"At most {_MOST_CANDIDATES:,} can be asked for at once.",
                fix="Choose a smaller step, fewer symbols, or keep fewer prefixes.",
            )
        self.oracle(self.most_candidates)  # refuses an ε without chances

    @property
    def rounds(self) -> int:
        """How many there are."""
        return -(-self.length // self.step)

    @property
    def extensions(self) -> tuple[bytes, ...]:
        """What a prefix is continued by: symbols, and after an end only ends."""
        every = (bytes(each) for each in product(bytes([_END]) + self.symbols, repeat=self.step))
        return tuple(each for each in every if _END not in each.rstrip(bytes([_END])))

    @property
    def most_candidates(self) -> int:
        """In any round."""
        extensions = sum(int(len(self.symbols) ** size) for size in range(self.step + 1))
        return self.keep * extensions

    def oracle(self, candidates: int) -> Hadamard:
        """What is reported with, over so many candidates and, last, none of them."""
        return Hadamard(self.epsilon, candidates + 1)

    def draw_rounds(self, people: int) -> NDArray[np.uint32]:
        """For each person the round in which they report: uniform, by secure bits, without a look at the text."""
        return coins.uniform(self.rounds, people)

    def places(self, texts: Sequence[str], candidates: Sequence[bytes]) -> NDArray[np.int64]:
        """What each person of a round reports about: the place of the text's prefix, or that of none."""
        known = {candidate: place for place, candidate in enumerate(candidates)}
        width = len(candidates[0])
        seen: dict[str, int] = {}
        for text in set(texts):
            data = text.encode()
            # A text with a byte 0 in it would be mistaken for one that has ended.
            seen[text] = len(known) if _END in data else known.get(data[:width].ljust(width, bytes([_END])), len(known))
        return np.fromiter((seen[text] for text in texts), np.int64, len(texts))

    @property
    def score(self) -> float:
        """How many standard errors a prefix must stand above 0, by Bonferroni over all rounds and candidates."""
        return -NormalDist().inv_cdf(self.level / (self.rounds * self.most_candidates))

    def smallest(self, people: int, power: float = 0.95) -> float:
        """The smallest share of a text that is found with chance ``power``, when so many people report.

        In each of its rounds it must pass `score`, and misses each with chance (1 − power)/rounds at most. A round has
        people/rounds reports; besides their coins it is chance who is among them. Holds where fewer than `keep` other
        prefixes are as frequent.
        """
        if not 0 < power < 1:
            raise InputError("The power must lie between 0 and 1.", why="It is a chance.", fix="0.95 is usual.")
        each = sized(people, "people", least=self.rounds, most=2**40) / self.rounds
        oracle = self.oracle(self.most_candidates)
        hidden = self.score * math.sqrt(oracle.variance(0.0, 1) / each)
        reach = -NormalDist().inv_cdf((1 - power) / self.rounds)
        found = hidden
        for _ in range(60):  # a fixed point: the error of a share grows, slowly, with the share
            share = min(found, 1.0)
            found = hidden + reach * math.sqrt((oracle.variance(share, 1) + share * (1 - share)) / each)
        return found


@dataclass(frozen=True)
class Heavy:
    """One frequent text.

    Attributes:
        text: As far as it was found; bytes that are no UTF-8 are shown as �.
        whole: Whether it ends there; if not, it is the beginning of one or several longer ones.
        share: Of all people, unbiased but for its having been chosen.
        error: Its standard error, with the chance of who was asked in that round.
    """

    text: str
    whole: bool
    share: float
    error: float

    def margin(self, level: float = 0.95) -> float:
        """The half-width: the share lies within it with this confidence."""
        return quantile(level, 1) * self.error


class PrefixSearch:
    """The collector's side: asks for `candidates`, takes the tally of a round, goes on.

    >>> plan = PrefixPlan(epsilon=5.0, length=4, symbols=b"abc", keep=6, level=1e-7)
    >>> texts = ["ab"] * 9000 + ["cab"] * 6000
    >>> [(each.text, each.whole) for each in search(plan, texts)]
    [('ab', True), ('cab', True)]
    """

    def __init__(self, plan: PrefixPlan) -> None:
        self.plan = plan
        self.round = 0
        self.found: list[Heavy] = []
        self._prefixes: list[bytes] = [b""]

    @property
    def candidates(self) -> tuple[bytes, ...]:
        """What this round asks for; empty when the search is over."""
        if self.round == self.plan.rounds:
            return ()
        return tuple(prefix + more for prefix in self._prefixes for more in self.plan.extensions)

    @property
    def oracle(self) -> Hadamard:
        """What this round's people report with."""
        return self.plan.oracle(len(self.candidates))

    def take(self, tally: Tally) -> None:
        """The reports of this round, all of them."""
        candidates = self.candidates
        if not candidates or tally.randomiser != self.oracle:
            raise InputError(
                "This tally is not of the round that is open.",
                why="Each round has candidates of its own.",
                fix="Fold the reports of each round by themselves, and hand them over in order.",
            )
        self.round += 1
        self._prefixes = []
        if not tally.reports:
            self.round = self.plan.rounds  # nobody goes on
            return
        shares = estimate(tally).shares[:-1]
        oracle = tally.randomiser
        passed = np.flatnonzero(shares > self.plan.score * math.sqrt(oracle.variance(0.0, tally.reports)))
        order = passed[np.argsort(-shares[passed], kind="stable")][: self.plan.keep]
        last = self.round == self.plan.rounds
        for place in order.tolist():
            prefix, whole = candidates[place], candidates[place].endswith(bytes([_END]))
            if whole or last:
                self.found.append(_heavy(prefix, float(shares[place]), oracle, tally.reports, whole=whole))
            else:
                self._prefixes.append(prefix)
        if not self._prefixes:
            self.round = self.plan.rounds


def _heavy(prefix: bytes, share: float, oracle: Any, reports: int, *, whole: bool) -> Heavy:
    held = min(max(share, 0.0), 1.0)
    error = math.sqrt(oracle.variance(held, reports) + held * (1 - held) / reports)
    return Heavy(prefix.rstrip(bytes([_END])).decode(errors="replace"), whole, share, error)


def search(plan: PrefixPlan, texts: Sequence[str]) -> tuple[Heavy, ...]:
    """The whole search on the texts of everybody, devices and collector in one process: the most frequent first.

    What runs on a device is `draw_rounds`, `places` and the oracle's `encode`; the rest sees reports alone.
    """
    rounds = plan.draw_rounds(len(texts))
    collector = PrefixSearch(plan)
    while collector.candidates:
        asked = [texts[at] for at in np.flatnonzero(rounds == collector.round).tolist()]
        oracle = collector.oracle
        collector.take(oracle.fold(oracle.encode(plan.places(asked, collector.candidates))))
    return tuple(sorted(collector.found, key=lambda each: -each.share))
