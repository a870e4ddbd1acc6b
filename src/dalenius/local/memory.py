"""Reports day after day (SPEC P8): an answer that is kept costs once, one that is drawn anew costs every day.

Fresh answers about the same value add up: after T days they have cost T·ε, and their average is the value. A memory
keeps the first answer about each value and repeats it, so a life costs what its *different* values cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local import chances
from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.randomiser import Randomiser, Reports, sized
from dalenius.local.randomisers.rappor import Rappor

MOST_VALUES = 1000
MOST_PEOPLE = 2**31


@dataclass(frozen=True)
class Spending:
    """What reports so far say about a person: always both, because the daily ε alone is no promise.

    Attributes:
        daily: ε of a single report, looked at alone.
        lifetime: ε of all reports of a life together, with the memory, for as many days as there will be.
        without: ε of the reports so far, had each been drawn anew: days × daily.
        days: How many there were.
        values: For how many different values an answer is kept at most.

    >>> print(Spending(daily=1.0, lifetime=2.0, without=30.0, days=30, values=2))
    ε = 1 a day; ε = 2 in a lifetime (at most 2 values kept); 30 fresh answers would have cost ε = 30
    """

    daily: float
    lifetime: float
    without: float
    days: int
    values: int

    def __str__(self) -> str:
        values = f"{self.values:,} value{'s' if self.values != 1 else ''}"
        fresh = f"{self.days:,} fresh answer{'s' if self.days != 1 else ''}"
        kept = f"ε = {self.lifetime:.4g} in a lifetime (at most {values} kept)"
        return f"ε = {self.daily:.4g} a day; {kept}; {fresh} would have cost ε = {self.without:.4g}"


@dataclass(frozen=True, eq=False)
class Kept:
    """The answers of a memory. Secret: it says which values people had, and their answers about each.

    Attributes:
        days: How many reports everybody has sent.
        used: How many answers each person has.
        keys: Which values they are about, in the order in which they came; people × values.
        answers: The answers; people × values × bytes.
    """

    days: int
    used: NDArray[np.int64]
    keys: NDArray[np.uint64]
    answers: Reports


class Memory:
    """Keeps, for each of some people, the first answer about each of their first ``values`` different values.

    A device is a memory of one person; that of many serves to simulate them. RAPPOR keeps its permanent response and
    sends a fresh instantaneous response to it; other randomisers send what is kept. Who has as many answers as are kept
    and comes to hold yet another value repeats the newest answer, so estimates lag behind from then on.

    Guarantee:
        ε = `lifetime` = values·ε∞ for the whole sequence of reports, however long, against every other life whose value
        *changes on the same days* (x_s = x_t exactly where x′_s = x′_t). On which days an answer is drawn or repeated
        follows from that pattern alone, and each of the at most ``values`` answers that are drawn is ε∞-private; what
        is sent is a function of them and of fresh coins.

    Not protected:
        The pattern itself. Where kept answers are sent as they are, two different reports show that the value changed
        in between, and no finite ε holds between a life that changes and one that does not. RAPPOR's instantaneous
        response (in a cohort that a person keeps) blurs this and does not remove it: over many days a permanent
        response can be averaged out of it.
        Keep one value (``values=1``) where changes are sensitive: then the reports never change.

    References:
        Erlingsson, Pihur & Korolova (2014), §2 and §3; Ding, Kulkarni & Yekhanin (2017), "Collecting telemetry data
        privately".

    >>> from dalenius.local.randomisers.k_ary import KAry
    >>> memory = Memory(KAry(epsilon=1.0, size=50), people=1, values=2)
    >>> first, second, third = (memory.report([value]).tolist() for value in (7, 31, 7))
    >>> first == third, memory.spending.days, round(memory.spending.lifetime, 3)
    (True, 3, 2.0)
    """

    def __init__(self, randomiser: Randomiser, people: int = 1, values: int = 1) -> None:
        if isinstance(randomiser, BitVector):
            raise InputError(
                "Answers about several bits at once are not kept.",
                why="They are kept by value, and each pattern of bits would be one.",
                fix="Ask about one thing, and keep the answers about that.",
            )
        self.randomiser = randomiser
        self.values = sized(values, "values", least=1, most=MOST_VALUES)
        self.days = 0
        size = sized(people, "people", least=1, most=MOST_PEOPLE)
        self._keys: NDArray[np.uint64] = np.zeros((size, self.values), np.uint64)
        self._kept: Reports = np.zeros((size, self.values, randomiser.report_bytes), np.uint8)
        self._used: NDArray[np.int64] = np.zeros(size, np.int64)

    @classmethod
    def of(cls, randomiser: Randomiser, kept: Kept) -> Memory:
        """The memory that keeps this."""
        memory = cls(randomiser, *kept.keys.shape)
        memory.days, memory._used, memory._keys, memory._kept = kept.days, kept.used, kept.keys, kept.answers
        return memory

    @property
    def kept(self) -> Kept:
        """What is kept, to be written where only the people themselves can read it (`memory_files`)."""
        return Kept(self.days, self._used, self._keys, self._kept)

    @property
    def people(self) -> int:
        """Whose answers are kept."""
        return len(self._used)

    @property
    def daily(self) -> float:
        """ε of a single report."""
        found = self.randomiser
        return found.daily_epsilon if isinstance(found, Rappor) else found.actual_epsilon

    @property
    def lifetime(self) -> float:
        """ε of all reports there will ever be: that of ``values`` kept answers, rounded up."""
        return chances.stated(self.randomiser.ratio**self.values)

    @property
    def spending(self) -> Spending:
        """What the reports so far have cost."""
        return Spending(self.daily, self.lifetime, self.days * self.daily, self.days, self.values)

    def report(self, values: object) -> Reports:
        """Today's reports: one value for each person, in the same order every day."""
        keys = self.randomiser.checked(values)
        if keys.ndim != 1 or len(keys) != len(self._used):
            raise InputError(
                f"There must be one value for each of the {len(self._used):,} people.",
                why="The memory keeps everybody's answers by their place, and looks them up by the value.",
                fix="Give everybody's value of the day, in the same order every day.",
            )
        keys = keys.astype(np.uint64)
        everybody = np.arange(len(keys))
        filled = np.arange(self.values) < self._used[:, None]
        known = (self._keys == keys[:, None]) & filled
        new = ~known.any(axis=1) & (self._used < self.values)
        for drawn in (new & (self._used == 0), new & (self._used > 0)):
            if drawn.any():
                at = self._used[drawn]
                self._kept[everybody[drawn], at] = self._answers(_some(values, drawn), self._kept[drawn, 0], at)
                self._keys[everybody[drawn], at] = keys[drawn]
                known[everybody[drawn], at] = True
        self._used += new
        place = np.where(known.any(axis=1), known.argmax(axis=1), self._used - 1)
        self.days += 1
        kept = self._kept[everybody, place]
        return self.randomiser.again(kept) if isinstance(self.randomiser, Rappor) else kept

    def _answers(self, values: object, first: Reports, used: NDArray[np.int64]) -> Reports:
        """Answers to keep; RAPPOR's stay in the cohort of a person's first one."""
        if not isinstance(self.randomiser, Rappor):
            return self.randomiser.encode(values)
        permanent = self.randomiser.permanent
        return permanent.encode_beside(values, first) if used[0] else permanent.encode(values)


def _some(values: object, chosen: NDArray[np.bool_]) -> object:
    """Those of the values, of whatever type they are."""
    if isinstance(values, np.ndarray):
        return values[chosen]
    return [each for each, wanted in zip(values, chosen.tolist(), strict=True) if wanted]  # type: ignore[call-overload]
