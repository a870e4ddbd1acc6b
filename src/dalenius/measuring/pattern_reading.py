r"""Regular expressions, read here to be written anew: a part of RE2's language that means the same in every engine.

Nothing that was typed reaches an engine. A pattern is read into a small tree (`patterns`): characters and sets of them
as ranges of code points, sequences, choices and counted repetitions. `spelled` writes that down again with nothing else
in it: no flags, no shorthands, no escapes but numbers. What this file cannot read is refused, with the reason.

What is read: characters, `.`, `[a-z]`, `[^a-z]`, `[[:alpha:]]`, `\d`, `\w`, `\s` and their opposites, `\` before a
sign, groups, `|`, `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`, `^` where a choice begins, `$` where one ends, and `(?i)` at
the beginning. How long one takes on a text is bounded in `automata`.
"""

from __future__ import annotations

from functools import lru_cache

from dalenius.measuring.patterns import (
    LAST,
    Choice,
    Leaf,
    Node,
    Pattern,
    PatternError,
    Ranges,
    Repeat,
    chain,
    choice,
    joined,
    leaves,
    loosened,
    nullable,
    others,
)

MOST_REPEATS = 50
MOST_LEAVES = 250  # characters and sets, with repetitions written out
MOST_DEPTH = 8  # of groups
_SPECIAL = frozenset("\\.^$*+?()[]{}|")
_CLASSES = {
    "d": ((48, 57),),
    "s": ((9, 10), (12, 13), (32, 32)),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
_NAMED = {
    "alpha": ((65, 90), (97, 122)),
    "digit": ((48, 57),),
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "upper": ((65, 90),),
    "lower": ((97, 122),),
    "space": ((9, 13), (32, 32)),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
}
_CONTROLS = {"t": 9, "n": 10, "r": 13}
_ALIKE = {ord("k"): 0x212A, ord("s"): 0x17F}  # the signs of Kelvin and of the long s, whose small letters are ASCII


@lru_cache(maxsize=512)
def read_pattern(text: str, *, folded: bool = False, full: bool = False) -> tuple[Pattern, ...]:
    """The things of which a text must have one, by how they are bound to its ends.

    Args:
        text: As it was typed.
        folded: Whether case does not matter, as after `(?i)`.
        full: Whether all of a text must match.

    Raises:
        PatternError: With the reason.
    """
    rest = text.removeprefix("(?i)")
    reader = _Reader(rest, folded=folded or rest != text)
    bound: dict[tuple[bool, bool], list[Node]] = {}
    for node, start, end in reader.top(full=full):
        bound.setdefault((start, end), []).append(loosened(node, start=start, end=end))
    found = tuple(Pattern(choice(nodes), start, end) for (start, end), nodes in bound.items())
    if sum(map(leaves, (each.node for each in found))) > MOST_LEAVES:
        raise PatternError("It is too long with its repetitions written out.")
    return found


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str, *, folded: bool) -> None:
        self.text, self.folded, self.at, self.depth = text, folded, 0, 0

    def top(self, *, full: bool) -> list[tuple[Node, bool, bool]]:
        """The choices of the whole, each with whether it is bound to the start and to the end."""
        found = []
        while True:
            start = self.takes("^") or full
            node = self.sequence()
            end = self.takes("$") or full
            found.append((node, start, end))
            if self.takes("|"):
                continue
            if self.at < len(self.text):
                raise PatternError(self.stuck())
            return self.opened(found)

    @staticmethod
    def opened(found: list[tuple[Node, bool, bool]]) -> list[tuple[Node, bool, bool]]:
        """With the choices of ^(a|b)$ as choices of their own, where nothing else is there."""
        return [
            (each, start, end)
            for node, start, end in found
            for each in (node.parts if isinstance(node, Choice) else (node,))
        ]

    def stuck(self) -> str:
        sign = self.text[self.at]
        if sign in "^$":
            return "^ stands where a pattern begins, $ where it ends; for the signs themselves write \\^ and \\$."
        return f"It cannot go on at {sign!r}."

    def sequence(self) -> Node:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)^$":
            parts.append(self.repeated())
        if not parts and self.depth and self.text[self.at : self.at + 1] in {"^", "$"}:
            raise PatternError("^ and $ cannot stand in a group; write ^a|b$ without parentheses.")
        if not parts:
            raise PatternError("A part of it is empty; for the empty text write a = ''.")
        return chain(parts)

    def repeated(self) -> Node:
        node = self.atom()
        counts = 0
        while (found := self.times()) is not None:
            counts += 1
            least, most = found
            varying = isinstance(node, Repeat) and node.least != node.most
            if counts > 1 or varying or nullable(node):
                raise PatternError("What is repeated, or may be nothing, cannot be repeated again.")
            if most == 0:
                raise PatternError("{0} stands for nothing.")
            node = node if (least, most) == (1, 1) else Repeat(node, least, most)
            self.takes("?")  # as little as possible: it makes no difference to whether there is a match
        return node

    def times(self) -> tuple[int, int | None] | None:
        for sign, found in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.takes(sign):
                return found
        if not self.takes("{"):
            return None
        inside, close, _ = self.text[self.at :].partition("}")
        low, comma, high = inside.partition(",")
        for each in (low, high) if comma and high else (low,):
            if not (each.isascii() and each.isdigit()) or (len(each) > 1 and each[0] == "0"):
                raise PatternError("{ } takes one or two numbers, as in {2} or {2,5}; for the sign itself write \\{.")
        least, most = int(low), (None if comma and not high else int(high or low))
        if not close or max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise PatternError(f"{{ }} takes numbers up to {MOST_REPEATS}, the smaller one first.")
        self.at += len(inside) + 1
        return least, most

    def atom(self) -> Node:
        sign = self.text[self.at]
        self.at += 1
        match sign:
            case "(":
                return self.group()
            case "[":
                return Leaf(self.bracket())
            case ".":
                return Leaf(((0, 9), (11, LAST)))
            case "\\":
                return Leaf(self.escaped())
        if sign in _SPECIAL:
            self.at -= 1
            raise PatternError(self.stuck())
        return Leaf(self.alike(((ord(sign), ord(sign)),)))

    def group(self) -> Node:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise PatternError("Its groups are nested too deeply.")
        if self.takes("?") and not self.takes(":"):
            raise PatternError("Of groups with (? only (?: and, at the beginning, (?i) are read.")
        parts = [self.sequence()]
        while self.takes("|"):
            parts.append(self.sequence())
        if not self.takes(")"):
            inner = self.text[self.at : self.at + 1]
            why = (
                "^ and $ cannot stand in a group; write ^a|b$ without parentheses."
                if inner in {"^", "$"}
                else "A group is not closed."
            )
            raise PatternError(why)
        self.depth -= 1
        return choice(parts)

    def alike(self, ranges: Ranges) -> Ranges:
        """With the other case of each letter, as RE2 has it, where case does not matter."""
        if not self.folded:
            return ranges
        if any(high > 127 for _, high in ranges):
            raise PatternError("Without regard to case only letters of ASCII are read; use LOWER(a) instead.")
        found = list(ranges)
        for small in range(97, 123):
            if any(low <= each <= high for low, high in ranges for each in (small, small - 32)):
                found += [(each, each) for each in (small, small - 32, _ALIKE.get(small, small))]
        return joined(found)

    def escaped(self) -> Ranges:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign and sign.lower() in _CLASSES:
            found = self.alike(_CLASSES[sign.lower()])
            return others(found) if sign.isupper() else found
        if sign in _CONTROLS:
            return ((_CONTROLS[sign], _CONTROLS[sign]),)
        if sign == "b":
            raise PatternError("\\b is not read; for a word between blanks write CONTAINS(' ' || a || ' ', ' x ').")
        if not sign or sign.isalnum() or not sign.isascii() or not sign.isprintable():
            raise PatternError(f"\\{sign} is not read.")
        return ((ord(sign), ord(sign)),)

    def bracket(self) -> Ranges:
        negated, ranges = self.takes("^"), list[tuple[int, int]]()
        while not self.takes("]"):
            if self.text.startswith("[:", self.at):
                name, close, _ = self.text[self.at + 2 :].partition(":]")
                if not close or name not in _NAMED:
                    raise PatternError(f"Of named sets there are {', '.join(_NAMED)}.")
                ranges += _NAMED[name]
                self.at += len(name) + 4
                continue
            low = self.end_of_range(first=not ranges)
            if len(low) > 1 or low[0][0] != low[0][1]:
                ranges += low
                continue
            high = low
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in {"]", ""}:
                self.at += 1
                high = self.end_of_range(first=False)
            if len(high) > 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                raise PatternError("A range in [ ] has two ends, in order.")
            ranges.append((low[0][0], high[0][0]))
        if not ranges:
            raise PatternError("[ ] is empty.")
        found = self.alike(joined(ranges))
        found = others(found) if negated else found
        if not found:
            raise PatternError("A set in [ ] has no characters.")
        return found

    def end_of_range(self, *, first: bool) -> Ranges:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign == "\\":
            kept, self.folded = self.folded, False
            try:
                return self.escaped()
            finally:
                self.folded = kept
        if not sign or sign == "[" or (sign == "-" and not first and self.text[self.at : self.at + 1] != "]"):
            raise PatternError("[ ] takes characters and ranges such as a-z; for the signs - and [ write \\- and \\[.")
        return ((ord(sign), ord(sign)),)

    def takes(self, sign: str) -> bool:
        taken = self.text[self.at : self.at + 1] == sign
        self.at += taken
        return taken
