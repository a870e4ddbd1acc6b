"""RAPPOR (SPEC P4): a Bloom filter of a text, blurred once for good and, if wanted, again on every day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.local import chances, coins
from dalenius.local.hashing import fingerprints
from dalenius.local.randomisers.randomiser import Randomiser, Reports, Values, bytes_for, sized

KEY = b"dalenius rappor"
"""Of the fingerprints of texts."""

_MOST_CELLS = 2**24


@dataclass(frozen=True)
class Rappor(Randomiser):
    """Sets up to h of k bits by hashes of the text, then flips every bit with chance f/2, then draws each again.

    - *Cohort.* Each person draws one of m cohorts and keeps it (`encode_beside`); each has hashes of its own, so
      that two texts that share bits in one cohort hardly do in another.
    - *Permanent response.* Every bit, set or not, is flipped with chance f/2 = a/2³². Who reports the same text again
      keeps this answer (`dalenius.local.memory`).
    - *Instantaneous response.* A permanent 1 is sent as 1 with chance q, a permanent 0 with chance p. With p = 0 and
      q = 1, the default, the permanent answer itself is sent.

    Guarantee:
        ε∞-local privacy of the permanent response, hence of however many reports are made of it, with
        e^ε∞ = ((1 − f/2)/(f/2))^2h (erratum 16: the factor is 2h, because two texts may differ in the h bits of the
        one *and* the h bits of the other). a is the least integer for which that is at most e^epsilon; `ratio` and
        `actual_epsilon` are of ε∞. A single report has `daily_ratio` = (q*(1 − p*)/(p*(1 − q*)))^h ≤ `ratio`, with
        q* = (1 − f/2)q + (f/2)p and p* = (f/2)q + (1 − f/2)p, the chances that a set and an unset bit are sent as 1.

    Assumes:
        k ≥ 2h (else the bound is not reached, only smaller). A text is held unchanged; what several texts of one person
        and the times of their changes give away, `dalenius.local.memory` says.

    References:
        Erlingsson, Pihur & Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response",
        Theorems 1 and 2.

    A report is the cohort, in 1, 2 or 4 bytes, low byte first, and then k bits, the first the lowest of its byte;
    unused bits are 0. A tally has a row for each cohort: how often each bit was 1, and, last, how many reports there
    were.

    >>> rappor = Rappor(epsilon=2.1972245773362196, cohorts=4)  # ln 9
    >>> rappor.flip == 2**30, rappor.ratio, rappor.report_bytes
    (True, Fraction(9, 1), 17)
    >>> blurred = Rappor(epsilon=2.1972245773362196, cohorts=4, p=0.5, q=0.75)
    >>> round(blurred.actual_epsilon, 3), round(blurred.daily_epsilon, 3)
    (2.197, 0.537)
    """

    name: ClassVar[str] = "rappor"

    bits: int = 128
    hashes: int = 1
    cohorts: int = 64
    p: float = 0.0
    q: float = 1.0

    def __post_init__(self) -> None:
        settled = {
            "hashes": (hashes := sized(self.hashes, "hashes", least=1, most=32)),
            "bits": sized(self.bits, "bits", least=2 * hashes, most=2**16),
            "cohorts": sized(self.cohorts, "cohorts", least=1, most=2**16),
            "p": float(parameters.real(self.p, "p")),
            "q": float(parameters.real(self.q, "q")),
        }
        for field, value in settled.items():
            object.__setattr__(self, field, value)
        if self.cohorts * self.bits > _MOST_CELLS:
            raise InputError(
                "RAPPOR takes at most 2^24 cells.",
                why="Every bit of every cohort is a counter in memory.",
                fix="Choose fewer cohorts or bits; 64 cohorts of 128 bits are usual.",
            )
        if not 0 <= self._rounded(self.p) < self._rounded(self.q) <= chances.ONE:
            raise InputError(
                "p must be at least 0, below q, and q at most 1.",
                why="They are the chances that a permanent 0 and a permanent 1 are sent as 1.",
                fix="Use p = 0.5 and q = 0.75, or leave them out to send the permanent answer.",
            )
        super().__post_init__()

    @staticmethod
    def _rounded(probability: float) -> int:
        return round(Fraction(probability) * chances.ONE)

    # --- what defines it, and what that promises

    @cached_property
    def flip(self) -> int:
        """The a of f/2 = a/2³²."""
        a = chances.smallest(self._ratio, self.epsilon, 1, chances.ONE // 2)
        if a == 1:
            raise chances.too_large(self.epsilon)
        return a

    def _ratio(self, a: int) -> Fraction:
        return Fraction(chances.ONE - a, a) ** (2 * self.hashes)

    @property
    def integers(self) -> Mapping[str, int]:
        """The chances of a flip, and of sending a permanent 0 and a permanent 1 as 1, in steps of 2⁻³²."""
        return {"flip": self.flip, "send_zero": self._rounded(self.p), "send_one": self._rounded(self.q)}

    @cached_property
    def ratio(self) -> Fraction:
        """((1 − f/2)/(f/2))^2h: of the permanent response."""
        return chances.informative(self._ratio(self.flip), self.epsilon)

    @cached_property
    def sent(self) -> tuple[Fraction, Fraction]:
        """p* and q*: the exact chances that an unset and a set bit of the filter are sent as 1."""
        flip, low, high = (chances.chance(a) for a in self.integers.values())
        return flip * high + (1 - flip) * low, (1 - flip) * high + flip * low

    @cached_property
    def daily_ratio(self) -> Fraction:
        """(q*(1 − p*)/(p*(1 − q*)))^h: of a single report."""
        low, high = self.sent
        return (high * (1 - low) / (low * (1 - high))) ** self.hashes

    @cached_property
    def daily_epsilon(self) -> float:
        """ln(daily_ratio), rounded up."""
        return chances.stated(self.daily_ratio)

    @property
    def permanent(self) -> Rappor:
        """The same without the instantaneous response: what is kept."""
        return Rappor(self.epsilon, self.bits, self.hashes, self.cohorts)

    @property
    def report_bytes(self) -> int:
        """The cohort and the bits."""
        return self.public_bytes + -(-self.bits // 8)

    @property
    def public_bytes(self) -> int:
        """The cohort."""
        return bytes_for(self.cohorts - 1)

    def law(self, value: Any, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each of the 2^k reports of a cohort."""
        cohort = int.from_bytes(public, "little") if public else 0
        head = cohort.to_bytes(self.public_bytes, "little")
        places = set(self.places(self.checked([value]), np.array([cohort]))[0].tolist())
        low, high = self.sent
        law = {}
        for pattern in range(2**self.bits):
            chance = Fraction(1)
            for bit in range(self.bits):
                one = high if bit in places else low
                chance *= one if pattern >> bit & 1 else 1 - one
            law[head + pattern.to_bytes(self.report_bytes - len(head), "little")] = chance
        return law

    # --- the Bloom filter

    def checked(self, values: object) -> Values:
        """64 bits for each value: the fingerprint of a text, or the value itself where it is a whole number."""
        # Of a list with texts in it, numpy would make texts of everything.
        mixed = isinstance(values, list | tuple) and any(isinstance(each, str) for each in values)
        found = np.array(values, object) if mixed else np.asarray(values)
        if found.ndim == 1 and (found.dtype.kind == "u" or (found.dtype.kind == "i" and not (found < 0).any())):
            return found.astype(np.uint64)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "UO"):
            raise InputError(
                "Values must be a list of texts, or of whole numbers from 0.",
                why="RAPPOR hashes them; other types have no bytes that all devices agree on.",
                fix="Turn them into texts.",
            )
        texts = found.tolist()
        for place, text in enumerate(texts, start=1):
            if not isinstance(text, str):
                raise InputError(f"Value {place:,} is no text.", why="The others may be.", fix="Turn it into a text.")
        distinct = list(dict.fromkeys(texts))  # a survey has few; to hash each once is faster
        known = dict(zip(distinct, fingerprints(distinct, KEY).tolist(), strict=True))
        return np.fromiter((known[text] for text in texts), np.uint64, len(texts))

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """(a, a′, b) of hash i in cohort j: the first 24 bytes of BLAKE2b of "dalenius rappor j i", low byte first."""
        names = (f"{KEY.decode()} {cohort} {i}" for cohort in range(self.cohorts) for i in range(self.hashes))
        digests = b"".join(hashlib.blake2b(name.encode(), digest_size=24).digest() for name in names)
        return np.frombuffer(digests, "<u8").astype(np.uint64).reshape(self.cohorts, self.hashes, 3)

    def places(self, values: Values, cohorts: NDArray[Any]) -> NDArray[np.int64]:
        """The h bits of each value in its cohort: ⌊s·k/2³²⌋, s the upper 32 bits of (a·low + a′·high + b) mod 2⁶⁴.

        Low and high are the halves of the value's 64 bits.
        """
        seeds = self.seeds[cohorts]
        low, high = (values & np.uint64(2**32 - 1))[:, None], (values >> np.uint64(32))[:, None]
        state = seeds[:, :, 0] * low + seeds[:, :, 1] * high + seeds[:, :, 2]
        places: NDArray[np.int64] = ((state >> np.uint64(32)) * np.uint64(self.bits) >> np.uint64(32)).astype(np.int64)
        return places

    # --- reports

    def _encode(self, values: Values, reports: Reports) -> None:
        self._answer(values, coins.uniform(self.cohorts, len(values)), reports)

    def encode_beside(self, values: object, earlier: Reports) -> Reports:
        """Reports of people who reported before: each stays in the cohort of the earlier report.

        A cohort is sent openly. Drawn anew for another value, it would show that the value is another one.
        """
        checked, cohorts = self.checked(values), self._cohorts_of(earlier)
        reports = np.empty((len(checked), self.report_bytes), np.uint8)
        for part in self._parts(len(checked)):
            self._answer(checked[part], cohorts[part], reports[part])
        return reports

    def _answer(self, values: Values, cohorts: NDArray[Any], reports: Reports) -> None:
        reports[:, : self.public_bytes] = _bytes_of(cohorts, self.public_bytes)
        wanted = np.zeros((len(values), self.bits), np.bool_)
        np.put_along_axis(wanted, self.places(values, cohorts), values=True, axis=1)
        wanted ^= coins.coins(self.flip, wanted.size).reshape(wanted.shape)
        self._send(wanted, reports)

    def again(self, kept: Reports) -> Reports:
        """Today's reports of kept permanent answers, which are reports of `permanent`."""
        reports = np.array(kept)
        for part in self._parts(len(reports)):
            self._send(self._bits_of(reports[part]), reports[part])
        return reports

    def _send(self, bits: NDArray[np.bool_], reports: Reports) -> None:
        """The instantaneous response to permanent bits; ones and zeros take the same draws."""
        zero, one = self._rounded(self.p), self._rounded(self.q)
        if (zero, one) != (0, chances.ONE):
            ones, zeros = (coins.coins(a, bits.size).reshape(bits.shape) for a in (one, zero))
            bits = np.where(bits, ones, zeros)
        reports[:, self.public_bytes :] = np.packbits(bits, axis=1, bitorder="little")

    def _bits_of(self, reports: Reports) -> NDArray[np.bool_]:
        packed = reports[:, self.public_bytes :]
        return np.unpackbits(packed, axis=1, count=self.bits, bitorder="little").astype(np.bool_)

    def _cohorts_of(self, reports: Reports) -> NDArray[np.int64]:
        head = np.ascontiguousarray(reports[:, : self.public_bytes])
        return head.view(f"<u{self.public_bytes}")[:, 0].astype(np.int64)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield 0, self._cohorts_of(reports) >= self.cohorts, "names a cohort that there is not"
        if spare := -self.bits % 8:
            yield self.report_bytes - 1, reports[:, -1] >> (8 - spare) > 0, "has bits set after its last one"

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """Bits and the number of reports, for each cohort."""
        return self.cohorts, self.bits + 1

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        cohorts = self._cohorts_of(reports)
        order = np.argsort(cohorts, kind="stable")
        bits = self._bits_of(reports[order])
        present, starts = np.unique(cohorts[order], return_index=True)
        counts[present, :-1] += np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
        counts[:, -1] += np.bincount(cohorts, minlength=self.cohorts)


def _bytes_of(numbers: NDArray[Any], width: int) -> Reports:
    return numbers.astype(f"<u{width}").view(np.uint8).reshape(len(numbers), width)
