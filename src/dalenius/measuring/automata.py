"""How many states a pattern's automaton has: where they are few, no text can make it slow.

DuckDB matches with RE2, which reads a text byte by byte and builds the states of a deterministic automaton as texts
lead to them, once for all rows of a statement. One state costs a microsecond or so to build; a step between two that
are there costs a few nanoseconds, whatever the text holds. Only where there are so many states that they do not fit in
its memory (8 MB, a third of it for one automaton), and are thrown away and built again, can texts be made that cost a
hundred times more (`a.{15}b`), and one person's rows could be such texts. So a pattern goes on only if each automaton
that RE2 may build for it has at most `MOST_STATES` states, which is found out here by building them: from the pattern
alone, before anything is read. They are

* the one that looks for it anywhere;
* where it is bound to the start, the one that begins there and reads all of a text: what may follow is a part of the
  pattern (`patterns.with_rest`);
* where it is bound to the end, also the one that reads texts backwards: RE2 runs that one.

A state of RE2's is the set of places in the pattern where a match that began earlier may stand now. Where it looks
anywhere, places are told apart by which match began first: a state is a sequence of sets. It merges places that cannot
differ, from what comes before or from what comes after (common beginnings of choices, bytes that characters share).
Each of its states is therefore the image of one of those here, in which nothing is merged; but it tells apart whether a
match has just ended, which is up to two for one. There is room for ten times `MOST_STATES`. All of this is about its
search for any match, the longest first: it goes by the order of choices only where `patterns.with_rest` keeps it from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from dalenius.measuring.patterns import Chain, Choice, Leaf, Node, Pattern, PatternError, Repeat, with_rest

MOST_STATES = 256
_MOST_BYTES = 500_000  # of all states together: a table of steps for each, and the places in it
_MOST_PLACES = 1000
_MOST_STEPS = 30_000  # while they are built: some 20 ms
_ENDS = ((0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))  # code points of 1 to 4 bytes
_TOO_MANY = "Texts could make it slow: its automaton has too many states."
Bytes = tuple[tuple[int, int], ...]


@lru_cache(maxsize=512)
def check_states(pattern: Pattern) -> None:
    """Refuses a pattern that texts could make slow.

    Raises:
        PatternError: With the reason.
    """
    forward, shown = _Places(backwards=False), with_rest(pattern)
    _explored(forward, forward.read(shown.node), anywhere=not shown.start, whole=shown.end)
    if pattern.end:
        reverse = _Places(backwards=True)
        _explored(reverse, reverse.read(pattern.node), anywhere=False, whole=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the pattern: the places where it begins and ends, as bits, and whether it may be nothing."""

    first: int
    last: int
    empty: bool


@dataclass
class _Places:
    """Each byte that a pattern reads, with the bytes that fit there and the places that may follow."""

    backwards: bool
    fits: list[tuple[int, int]] = field(default_factory=list)
    follow: list[int] = field(default_factory=list)

    def read(self, node: Node) -> _Part:
        match node:
            case Leaf():
                return self.leaf(node)
            case Choice(parts=parts):
                found = [self.read(each) for each in parts]
                first, last = 0, 0
                for each in found:
                    first, last = first | each.first, last | each.last
                return _Part(first, last, any(each.empty for each in found))
            case Chain(parts=parts):
                return self.chained(parts[::-1] if self.backwards else parts)
            case Repeat(inner=inner, least=least, most=most):
                return self.repeated(inner, least, most)

    def chained(self, parts: tuple[Node, ...]) -> _Part:
        whole = _Part(0, 0, True)
        for each in parts:
            whole = self.after(whole, self.read(each))
        return whole

    def after(self, one: _Part, other: _Part) -> _Part:
        self.link(one.last, other.first)
        return _Part(
            one.first | (other.first if one.empty else 0),
            other.last | (one.last if other.empty else 0),
            one.empty and other.empty,
        )

    def repeated(self, inner: Node, least: int, most: int | None) -> _Part:
        """Written out: xx(x(x)?)? for two to four, xx+ for two and more."""
        first, last, before = 0, 0, 0
        for count in range(1, max(1, least if most is None else most) + 1):
            part = self.read(inner)
            self.link(before, part.first)
            first, before = first or part.first, part.last
            if most is None:
                last = part.last
            elif count >= least:
                last |= part.last
        if most is None:
            self.link(part.last, part.first)
        return _Part(first, last, least == 0)

    def link(self, froms: int, tos: int) -> None:
        for at in _bits(froms):
            self.follow[at] |= tos

    def leaf(self, leaf: Leaf) -> _Part:
        first, last = 0, 0
        for sequence in _sequences(leaf):
            places = [self.place(each) for each in (sequence[::-1] if self.backwards else sequence)]
            for one, other in pairwise(places):
                self.follow[one] |= 1 << other
            first, last = first | 1 << places[0], last | 1 << places[-1]
        return _Part(first, last, False)

    def place(self, fits: tuple[int, int]) -> int:
        if len(self.fits) >= _MOST_PLACES:
            raise PatternError("It is too long with its repetitions and characters written out.")
        self.fits.append(fits)
        self.follow.append(0)
        return len(self.fits) - 1


def _explored(places: _Places, whole_part: _Part, *, anywhere: bool, whole: bool) -> None:
    """Builds all states that texts can lead to; where any match will do, only one step past the first."""
    match_bit = 1 << len(places.fits)
    follow = [each | (match_bit if whole_part.last >> at & 1 else 0) for at, each in enumerate(places.follow)]
    start = whole_part.first | (match_bit if whole_part.empty else 0)
    kinds = _kinds(places)
    known: dict[int, int] = {}

    def moved(group: int) -> int:
        if group not in known:
            found = 0
            for at in _bits(group):
                found |= follow[at]
            known[group] = found
        return known[group]

    first = (start,)
    seen, waiting, steps, bytes_ = {first}, [first], 0, 0
    while waiting:
        groups = waiting.pop()
        matched = any(each & match_bit for each in groups)
        steps += len(kinds) * (len(groups) + 1)
        if steps > _MOST_STEPS:
            raise PatternError(_TOO_MANY)
        for kind in kinds:
            taken, found = 0, []
            for group in (*(moved(each & kind) for each in groups), *((start,) if anywhere else ())):
                fresh = group & ~taken
                if fresh:
                    found.append(fresh)
                    taken |= fresh
            state = tuple(found)
            if state not in seen:
                seen.add(state)
                bytes_ += 64 + 8 * len(kinds) + 4 * (taken.bit_count() + len(found))
                if len(seen) > MOST_STATES or bytes_ > _MOST_BYTES:
                    raise PatternError(_TOO_MANY)
                if whole or not matched:
                    waiting.append(state)


def _kinds(places: _Places) -> list[int]:
    """For each way in which bytes fit places, those that they fit."""
    marks = sorted({0, *(low for low, _ in places.fits), *(high + 1 for _, high in places.fits if high < 255)})
    found = dict[int, None]()
    for mark in marks:
        found[sum(1 << at for at, (low, high) in enumerate(places.fits) if low <= mark <= high)] = None
    return list(found)


def _bits(value: int) -> Iterator[int]:
    while value:
        low = value & -value
        yield low.bit_length() - 1
        value ^= low


@lru_cache(maxsize=512)
def _sequences(leaf: Leaf) -> tuple[Bytes, ...]:
    """The bytes of the characters of a set, in UTF-8, as sequences of ranges."""
    found: list[Bytes] = []
    for low, high in leaf.ranges:
        for least, most in _ENDS:
            if low <= most and high >= least:
                found += _split(max(low, least), min(high, most))
    return tuple(found)


def _split(low: int, high: int) -> list[Bytes]:
    """A range of code points with equally many bytes, cut where later bytes do not run through all of theirs."""
    count = next(at for at, (_, most) in enumerate(_ENDS) if high <= most)
    for rest in range(1, count + 1):
        block = (1 << 6 * rest) - 1  # what the last bytes run through
        if low & ~block != high & ~block:
            if low & block:
                return [*_split(low, low | block), *_split((low | block) + 1, high)]
            if high & block != block:
                return [*_split(low, (high & ~block) - 1), *_split(high & ~block, high)]
    one, other = _encoded(low), _encoded(high)
    return [tuple(zip(one, other, strict=True))]


def _encoded(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass")
