"""What every randomiser can do: encode values to reports, check reports, fold them into counts, and state its loss.

Reports are bytes: an array of uint8 with one row of `report_bytes` per report, which is what a file holds and what
other languages read. There is no second form in memory.

To add a randomiser, write one file with a frozen dataclass that

- subclasses `PureOracle` (a report *supports* a set of values), `FrequencyOracle` or `Randomiser`;
- has as fields what defines it (ε, the size, a count of hashes …): a file's header holds exactly these, and
  `equal fields = equal law` is what makes tallies mergeable;
- gives `integers` (the a of each chance a/2³², and what else follows from the fields), `ratio`, `report_bytes`,
  `_encode`, `_check`, `_fold`, `law`; a `PureOracle` also `p` and `q`;

and put the class into the tuple `RANDOMISERS` of this package. Encoding draws from `dalenius.local.coins` and from
nowhere else. The tests in `tests/unit/local/test_every_randomiser.py` then prove its ratio and its estimates.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances
from dalenius.local.tallies import Tally

Reports = NDArray[np.uint8]
"""Packed reports: one row each."""

Values = NDArray[Any]
"""What people hold, as a checked array."""

LARGEST_SIZE = 2**31
"""Of a domain: indices fit 32 bits wherever they are drawn, packed or hashed."""

_CHUNK_BYTES = 2**17
"""Worked on at once: about what stays in the cache of a core."""


@dataclass(frozen=True)
class Randomiser(ABC):
    """Turns one person's value into a report that says little about it.

    Guarantee:
        Pure ε-local differential privacy with ε = `actual_epsilon` ≤ `epsilon`: for every report y and all values
        v, v′: P(y | v) ≤ `ratio`·P(y | v′), and ratio ≤ e^epsilon by a comparison of integers. One report; a person
        who reports k times spends k·ε (`dalenius.local.memory`).

    Assumes:
        The secure words of `mechanisms.noise` are uniform and independent.
    """

    name: ClassVar[str]
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameters.epsilon(self.epsilon))
        self._settle()
        self.ratio  # noqa: B018 - refuses an ε that has no chances

    def _settle(self) -> None:  # noqa: B027 - most add none
        """Check the fields that a subclass adds, and replace 0 by the best choice; ε and the size are settled."""

    # --- what defines it, and what that promises

    @property
    @abstractmethod
    def integers(self) -> Mapping[str, int]:
        """The integers that follow from the fields, for the header of a file: chances a/2³² and sizes."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The exact worst P(report | value)/P(report | other value)."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """How long each report is."""

    @property
    def public_bytes(self) -> int:
        """How many bytes at the start of a report are drawn without looking at the value (a hash's key, say)."""
        return 0

    @cached_property
    def actual_epsilon(self) -> float:
        """ln(ratio), rounded up: the ε that is stated."""
        return chances.stated(self.ratio)

    def fields(self) -> dict[str, Any]:
        """The fields by name: `type(self)(**fields)` is an equal randomiser."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    @abstractmethod
    def law(self, value: Any, public: bytes = b"") -> dict[bytes, Fraction]:
        """P(report | value, public part) of every possible report, exactly; for small sizes only."""

    # --- from values to reports

    def encode(self, values: object) -> Reports:
        """One report for each value, each drawn on its own."""
        checked = self.checked(values)
        reports = np.empty((len(checked), self.report_bytes), np.uint8)
        for part in self._parts(len(checked)):
            self._encode(checked[part], reports[part])
        return reports

    @abstractmethod
    def checked(self, values: object) -> Values:
        """The values as an array; refused with the place of the first that is not one."""

    @abstractmethod
    def _encode(self, values: Values, reports: Reports) -> None:
        """Write the reports of a few values."""

    # --- from reports to counts

    def check(self, reports: object, *, start: int = 0) -> Reports:
        """The reports, if the randomiser could have made every one of them.

        Args:
            reports: An array of uint8, one row each.
            start: At which byte of their file they begin, for the place in an error.

        Raises:
            ReportInvalidError: With the number of the first bad report, counted from 1, and its byte.
        """
        rows = np.asarray(reports)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.report_bytes:
            raise ReportInvalidError(
                f"These are not reports of {self.report_bytes} bytes each.",
                why=f"Reports of this randomiser ({self.name}) all have that length.",
                fix="Read them with the randomiser that made them.",
            )
        rows = np.ascontiguousarray(rows)
        for part in self._parts(len(rows)):
            for byte, bad, problem in self._check(rows[part]):
                if bad.any():
                    number = part.start + int(np.argmax(bad))
                    raise invalid(number, start + number * self.report_bytes + byte, problem)
        return rows

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        """For each thing that can be wrong: its byte in a report, which reports have it, and what it is."""
        del reports
        return iter(())

    def fold(self, reports: object) -> Tally:
        """The counts of reports, after `check`."""
        rows = self.check(reports)
        counts = np.zeros(self.tally_shape, np.int64)
        for part in self._fold_parts(len(rows)):
            self._fold(rows[part], counts)
        return Tally(self, len(rows), counts)

    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally's counts."""

    @abstractmethod
    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        """Add a few reports to the counts."""

    # --- chunks

    def _parts(self, count: int) -> Iterator[slice]:
        """Slices that cover `count` reports and fit the cache."""
        return slices(count, max(64, min(2**15, _CHUNK_BYTES // self.report_bytes)))

    def _fold_parts(self, count: int) -> Iterator[slice]:
        """Slices for folding, where other ones are faster."""
        return self._parts(count)


@dataclass(frozen=True)
class FrequencyOracle(Randomiser):
    """A randomiser of categories 0, …, size − 1, from whose tally each category's share is estimated.

    Assumes:
        The domain is public and fixed before anybody reports.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", sized(self.size, "size", least=2, most=LARGEST_SIZE))
        super().__post_init__()

    def checked(self, values: object) -> Values:
        """Indices in [0, size)."""
        found = np.asarray(values)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise InputError(
                "Values must be a list of whole numbers.",
                why="A randomiser of categories takes their places in the domain, counted from 0.",
                fix="Turn texts into places with Domain.index.",
            )
        outside = (found < 0) | (found >= self.size)
        if outside.any():
            raise InputError(
                f"Value {int(np.argmax(outside)) + 1:,} is outside the domain.",
                why=f"The domain has {self.size:,} values, numbered from 0.",
                fix="Correct the value, or collect with a domain that holds it.",
            )
        return found.astype(np.uint32)

    @abstractmethod
    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """The unbiased estimate of each category's share of those who reported."""

    @abstractmethod
    def variance(self, share: float | NDArray[np.float64], reports: int) -> Any:
        """The variance of one category's estimate, closed form, for a *fixed* population with that true share.

        Only the randomisers are random here, not who was asked: the second term alone of erratum 2.
        """

    def variances(self, shares: NDArray[np.float64], reports: int) -> NDArray[np.float64]:
        """The variance of every estimate, where all true shares are known; not below those of `variance`."""
        return np.asarray(self.variance(shares, reports), np.float64)


@dataclass(frozen=True)
class PureOracle(FrequencyOracle):
    """A report supports a set of categories: the own one with chance p, every other one with chance q.

    A tally counts, for each category, the reports that support it. Then C(x) is the sum of n·π(x) coins of chance p and
    n·(1 − π(x)) of chance q, so (C(x)/n − q)/(p − q) is unbiased with variance [π p(1−p) + (1−π) q(1−q)]/(n(p−q)²).

    References:
        Wang, Blocki, Li & Jha (2017), "Locally differentially private protocols for frequency estimation", Theorem 2.
    """

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The exact chance that a report supports its own value."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The exact chance that it supports a given other one."""

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count for each category."""
        return (self.size,)

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """(C/n − q)/(p − q)."""
        return (tally.counts / tally.reports - float(self.q)) / float(self.p - self.q)

    def variance(self, share: float | NDArray[np.float64], reports: int) -> Any:
        """[π p(1−p) + (1−π) q(1−q)]/(n(p−q)²)."""
        own, other, gap = float(self.p * (1 - self.p)), float(self.q * (1 - self.q)), float(self.p - self.q)
        return (share * own + (1 - share) * other) / gap**2 / reports


def slices(count: int, step: int) -> Iterator[slice]:
    """0 … count in steps."""
    return (slice(at, min(at + step, count)) for at in range(0, count, step))


def sized(value: object, name: str, *, least: int, most: int) -> int:
    """A whole number between two bounds, numpy's integers included."""
    number = parameters.count(int(value) if isinstance(value, np.integer) else value, name, least=least)
    if number > most:
        raise InputError(
            f"{name} must be at most {most:,}.",
            why="Larger ones do not fit the packed reports.",
            fix=f"Choose a smaller {name}.",
        )
    return number


def bytes_for(most: int) -> int:
    """How many bytes hold the integers 0, …, most: 1, 2 or 4, so that arrays read them directly.

    >>> bytes_for(255), bytes_for(256), bytes_for(2**16)
    (1, 2, 4)
    """
    return 1 if most < 2**8 else 2 if most < 2**16 else 4


def invalid(number: int, byte: int, problem: str) -> ReportInvalidError:
    """The error for one bad report; both places counted from 0."""
    return ReportInvalidError(
        f"Report {number + 1:,} {problem} (byte {byte:,}).",
        why="The randomiser that the file names cannot make such a report.",
        fix="Leave the file out, or ask its sender for an intact copy.",
    )
