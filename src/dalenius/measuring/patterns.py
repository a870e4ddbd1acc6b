r"""Regular expressions that no text can make heavy: a part of RE2's, read here, whose automaton is small.

DuckDB matches with RE2, which builds the states of a deterministic automaton as texts lead to them, and keeps them for
the next row. Where there are few of them, a character costs one step, whatever the text holds. Where there are many, as
in `a.{15}b`, texts can be made that lead to a new one with each character: those cost a hundred times more, and one
person's rows could be such texts. So a pattern goes on only if its whole automaton has at most `MOST_STATES` states,
which is found out here by building it: from the pattern alone, before anything is read.

What is read: characters, `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s` and their opposites, `\` before a sign, groups, `|`,
`^`, `$`, `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`, and `(?i)` at the beginning. All of that RE2 reads, in the same way, so
that no pattern that goes on makes a statement fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_STATES = 100  # of the automaton
MOST_NODES = 600  # of the pattern with its repetitions written out
MOST_REPEATS = 50
_SPECIAL = frozenset("\\.^$*+?()[]{}|")
_CLASSES = {
    "d": (("0", "9"),),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
}


class PatternError(ValueError):
    """Why a pattern is not read."""


@dataclass(frozen=True, slots=True)
class _Characters:
    """A set of characters, as ranges; ``others``: all that are not in them."""

    ranges: tuple[tuple[str, str], ...]
    others: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.others


@dataclass
class _Automaton:
    """Steps without a character (``empty``), and with one (``moves``); `^` and `$` are steps of their own."""

    empty: list[list[int]] = field(default_factory=list)
    moves: list[tuple[_Characters, int] | None] = field(default_factory=list)
    starts: set[int] = field(default_factory=set)  # nodes that are left by their empty steps at the beginning alone

    def node(self) -> int:
        if len(self.empty) >= MOST_NODES:
            raise PatternError("It is too long with its repetitions written out.")
        self.empty.append([])
        self.moves.append(None)
        return len(self.empty) - 1


def check_pattern(pattern: str) -> None:
    """Refuses a pattern that is not read here, or whose automaton is too large.

    >>> check_pattern("^gift|card$")
    >>> check_pattern("a.{15}b")
    Traceback (most recent call last):
        ...
    dalenius.measuring.patterns.PatternError: Texts could make it slow: its automaton has more than 100 states.

    Raises:
        PatternError: With the reason.
    """
    text = pattern.removeprefix("(?i)")
    reader = _Reader(text, folded=text != pattern)
    start = reader.automaton.node()
    reader.alternatives(start)
    if reader.at < len(text):
        raise PatternError(f"It cannot go on at {text[reader.at]!r}.")
    _check_states(reader.automaton, start)


class _Reader:
    """Reads a pattern into an automaton, from left to right."""

    def __init__(self, text: str, *, folded: bool) -> None:
        self.text, self.folded, self.at = text, folded, 0
        self.automaton = _Automaton()

    def alternatives(self, start: int) -> int:
        end = self.automaton.node()
        while True:
            self.automaton.empty[self.sequence(start)].append(end)
            if not self.takes("|"):
                return end

    def sequence(self, start: int) -> int:
        here = self.automaton.node()
        self.automaton.empty[start].append(here)
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            here = self.repeated(here)
        return here

    def repeated(self, start: int) -> int:
        began = self.at
        end = self.atom(start)
        anchor = self.text[began] in "^$"
        least, most = self.times()
        if (least, most) == (1, 1):
            return end
        if anchor:
            raise PatternError("^ and $ cannot be repeated.")
        after, copies = self.at, [end]
        for _ in range(max(least, most or least, 1) - 1):
            self.at = began
            copies.append(self.atom(copies[-1]))
        self.at = after
        finish = self.automaton.node()
        if most is None:  # the last one as often as it comes
            before = copies[-2] if len(copies) > 1 else start
            self.automaton.empty[copies[-1]].append(before)
            if least == 0:
                self.automaton.empty[start].append(copies[-1])
            self.automaton.empty[copies[-1]].append(finish)
            return finish
        for count, each in enumerate([start, *copies]):
            if count >= least:
                self.automaton.empty[each].append(finish)
        return finish

    def times(self) -> tuple[int, int | None]:
        """How often what came before comes; None: as often as you like."""
        if self.at >= len(self.text) or self.text[self.at] not in "*+?{":
            return 1, 1
        sign = self.text[self.at]
        self.at += 1
        found: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, 0)}[sign]
        if sign == "{":
            least = self.number()
            most: int | None = least
            if self.takes(","):
                most = None if self.text[self.at : self.at + 1] == "}" else self.number()
            if not self.takes("}") or (most is not None and most < least) or most == 0:
                raise PatternError("{…} takes one number, or two in order.")
            found = least, most
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise PatternError("One repetition stands behind another.")
        return found

    def number(self) -> int:
        digits = ""
        while self.at < len(self.text) and self.text[self.at] in "0123456789" and len(digits) < 4:
            digits += self.text[self.at]
            self.at += 1
        if not digits or int(digits) > MOST_REPEATS:
            raise PatternError(f"{{…}} takes numbers up to {MOST_REPEATS}.")
        return int(digits)

    def atom(self, start: int) -> int:
        sign = self.text[self.at]
        self.at += 1
        match sign:
            case "(":
                if self.takes("?") and not self.takes(":"):
                    raise PatternError("Of groups only (…) and (?:…) are read.")
                end = self.alternatives(start)
                if not self.takes(")"):
                    raise PatternError("A parenthesis is not closed.")
                return end
            case "^":
                end = self.automaton.node()
                self.automaton.starts.add(start_only := self.automaton.node())
                self.automaton.empty[start].append(start_only)
                self.automaton.empty[start_only].append(end)
                return end
            case "$":  # it says where a match ends, and leads nowhere else
                end = self.automaton.node()
                self.automaton.empty[start].append(end)
                return end
            case ".":
                return self.moved(start, _Characters((("\n", "\n"),), others=True))
            case "[":
                return self.moved(start, self.bracket())
            case "\\":
                return self.moved(start, self.escaped())
        if sign in _SPECIAL:
            raise PatternError(f"It cannot go on at {sign!r}.")
        return self.moved(start, self.alike(sign))

    def moved(self, start: int, characters: _Characters) -> int:
        step, end = self.automaton.node(), self.automaton.node()
        self.automaton.empty[start].append(step)
        self.automaton.moves[step] = (characters, end)
        return end

    def alike(self, character: str) -> _Characters:
        both = {character, character.lower()[:1], character.upper()[:1]} if self.folded else {character}
        return _Characters(tuple((each, each) for each in sorted(both)))

    def escaped(self) -> _Characters:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign.lower() in _CLASSES and sign:
            return _Characters(_CLASSES[sign.lower()], others=sign.isupper())
        if not sign or sign.isalnum() or not sign.isascii() or sign.isspace():
            raise PatternError(f"\\{sign} is not read.")
        return self.alike(sign)

    def bracket(self) -> _Characters:
        others, ranges = self.takes("^"), list[tuple[str, str]]()
        while not self.takes("]"):
            low = self.text[self.at : self.at + 1]
            self.at += 1
            if low == "\\":
                found = self.escaped()
                if found.others:
                    raise PatternError("\\D, \\W and \\S cannot stand in [ ].")
                ranges += found.ranges
                continue
            if not low or low in "[^":
                raise PatternError("[ ] takes characters and ranges such as a-z.")
            high = low
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                high = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                if not high or high in "[\\" or "-" in {low, high} or high < low:
                    raise PatternError("A range in [ ] has two ends, in order.")
            elif low == "-" and ranges and self.text[self.at : self.at + 1] != "]":
                raise PatternError("A - in [ ] stands at an end.")
            ranges.append((low, high))
            if self.folded:
                ranges += [(each(low)[:1], each(high)[:1]) for each in (str.lower, str.upper)]
        if not ranges:
            raise PatternError("[ ] is empty.")
        return _Characters(tuple(ranges), others)

    def takes(self, sign: str) -> bool:
        taken = self.text[self.at : self.at + 1] == sign
        self.at += taken
        return taken


def _check_states(automaton: _Automaton, start: int) -> None:
    """Builds the states that texts can lead to, each a set of nodes in bits; a match may begin at every character."""
    moves = [(at, *move) for at, move in enumerate(automaton.moves) if move is not None]
    again = _closed(automaton, start, beginning=False)
    after = {at: _closed(automaton, end, beginning=False) for at, _, end in moves}
    kinds = {tuple(at for at, characters, _ in moves if letter in characters) for letter in _letters(automaton)}
    first = _closed(automaton, start, beginning=True)
    seen, waiting = {first}, [first]
    while waiting:
        nodes = waiting.pop()
        for kind in kinds:
            reached = again
            for at in kind:
                if nodes >> at & 1:
                    reached |= after[at]
            if reached not in seen:
                seen.add(reached)
                waiting.append(reached)
        if len(seen) > MOST_STATES:
            raise PatternError(f"Texts could make it slow: its automaton has more than {MOST_STATES} states.")


def _closed(automaton: _Automaton, node: int, *, beginning: bool) -> int:
    """A node with all that are reached without a character, as bits."""
    found, waiting = {node}, [node]
    while waiting:
        each = waiting.pop()
        if each in automaton.starts and not beginning:
            continue
        fresh = [after for after in automaton.empty[each] if after not in found]
        found.update(fresh)
        waiting += fresh
    return sum(1 << each for each in found)


def _letters(automaton: _Automaton) -> set[str]:
    """One character for each way in which sets tell characters apart: the ends of ranges, and what lies beside them."""
    found = {"\0", "\U0010ffff"}
    for move in automaton.moves:
        for low, high in move[0].ranges if move is not None else ():
            found |= {low, high, chr(max(0, ord(low) - 1)), chr(min(0x10FFFF, ord(high) + 1))}
    return found
