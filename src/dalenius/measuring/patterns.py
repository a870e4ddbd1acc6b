"""Patterns of texts as small trees, and how they are written down: what is left of regular expressions.

`pattern_reading` makes them, `automata` says which of them no text can make slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LAST = 0x10FFFF  # code point
Ranges = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """Why a pattern is not read."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One character out of a set of code points."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something as often as ``least`` to ``most``; None: without end."""

    inner: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    parts: tuple[Node, ...]


Node = Leaf | Repeat | Chain | Choice


@dataclass(frozen=True, slots=True)
class Pattern:
    """One thing to look for: anywhere in a text, at its start, at its end, or as all of it."""

    node: Node
    start: bool
    end: bool


def leaves(node: Node) -> int:
    """How many characters and sets there are, with repetitions written out."""
    match node:
        case Leaf():
            return 1
        case Repeat(inner=inner, least=least, most=most):
            return leaves(inner) * max(1, least if most is None else most)
        case Chain(parts=parts) | Choice(parts=parts):
            return sum(map(leaves, parts))


def nullable(node: Node) -> bool:
    """Whether it can be nothing at all."""
    match node:
        case Leaf():
            return False
        case Repeat(inner=inner, least=least):
            return least == 0 or nullable(inner)
        case Chain(parts=parts):
            return all(map(nullable, parts))
        case Choice(parts=parts):
            return any(map(nullable, parts))


def plain_texts(node: Node) -> list[str] | None:
    """The texts that it stands for, where each is written out in it."""
    match node:
        case Leaf(ranges=((low, high),)) if low == high:
            return [chr(low)]
        case Chain(parts=parts):
            pieces = [plain_texts(each) for each in parts]
            texts = [each[0] for each in pieces if each is not None and len(each) == 1]
            return ["".join(texts)] if len(texts) == len(parts) else None
        case Repeat(inner=inner, least=least, most=most) if least == most:
            found = plain_texts(inner)
            return [found[0] * least] if found is not None and len(found) == 1 else None
        case Choice(parts=parts):
            found = [each for part in parts for each in plain_texts(part) or [""]]
            return found if all(found) else None
    return None


def with_rest(pattern: Pattern) -> Pattern:
    """What is bound to the start alone, with the rest of the text: ^ab is ^ab and anything up to the end.

    RE2 asks of what is bound to the start alone which match comes first in the order of choices, and goes on past
    others: its states are told apart by that order, too, and `^(.*a.{15}c|.)` has 2¹⁵ of them, though one step finds a
    match. Of all of a text it asks only whether it matches.
    """
    if not pattern.start or pattern.end:
        return pattern
    return Pattern(chain([pattern.node, Repeat(Leaf(((0, LAST),)), 0, None)]), start=True, end=True)


def spelled(pattern: Pattern) -> str:
    r"""The pattern as RE2 reads it, and as nothing else does.

    >>> a_or_b = Choice((Leaf(((97, 97),)), Leaf(((98, 98),))))
    >>> spelled(Pattern(Repeat(a_or_b, 2, 5), start=True, end=True))
    '^(?:(?:a|b){2,5})$'
    >>> spelled(Pattern(a_or_b, start=True, end=False))
    '^(?:(?:a|b)[\\x{0}-\\x{10ffff}]*)$'
    """
    pattern = with_rest(pattern)
    return "^" * pattern.start + f"(?:{_spelled(pattern.node)})" + "$" * pattern.end


def _spelled(node: Node) -> str:
    match node:
        case Leaf(ranges=((low, high),)) if low == high:
            return _letter(low)
        case Leaf(ranges=ranges):
            rest = others(ranges)
            shown, sign = (rest, "^") if 0 < len(rest) < len(ranges) else (ranges, "")  # RE2 cannot read [^]
            return f"[{sign}{''.join(_letter(a) + ('-' + _letter(b)) * (a != b) for a, b in shown)}]"
        case Repeat(inner=inner, least=least, most=most):
            one = _spelled(inner) if isinstance(inner, Leaf) else f"(?:{_spelled(inner)})"
            signs = {(0, 1): "?", (0, None): "*", (1, None): "+"}
            return one + signs.get((least, most), f"{{{least},{'' if most is None else most}}}")
        case Chain(parts=parts):
            return "".join(f"(?:{_spelled(each)})" if isinstance(each, Choice) else _spelled(each) for each in parts)
        case Choice(parts=parts):
            return "|".join(map(_spelled, parts))


def _letter(code: int) -> str:
    letter = chr(code)
    return letter if letter.isascii() and letter.isalnum() else f"\\x{{{code:x}}}"


def others(ranges: Ranges) -> Ranges:
    """All code points that are in none of them."""
    found, after = list[tuple[int, int]](), 0
    for low, high in ranges:
        if low > after:
            found.append((after, low - 1))
        after = high + 1
    if after <= LAST:
        found.append((after, LAST))
    return tuple(found)


def joined(ranges: list[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch as one."""
    found = list[tuple[int, int]]()
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def choice(parts: list[Node]) -> Node:
    """One of several; choices among them are opened."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, Choice) else (part,))]
    return flat[0] if len(flat) == 1 else Choice(tuple(dict.fromkeys(flat)))


def chain(parts: list[Node]) -> Node:
    """One after the other; neighbours of one set are one repetition, as an engine would make them."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, Chain) else (part,))]
    found = list[Node]()
    for each in flat:
        one, other = (_counted(found[-1]), _counted(each)) if found else (None, None)
        if one is not None and other is not None and one.inner == other.inner and (one.least, one.most) != (1, 1):
            most = None if one.most is None or other.most is None else one.most + other.most
            found[-1] = Repeat(one.inner, one.least + other.least, most)
        elif one is not None and other is not None and one.inner == other.inner:
            most = None if other.most is None else 1 + other.most
            found[-1] = Repeat(one.inner, 1 + other.least, most)
        else:
            found.append(each)
    return found[0] if len(found) == 1 else Chain(tuple(found))


def _counted(node: Node) -> Repeat | None:
    """A set with how often it comes."""
    if isinstance(node, Leaf):
        return Repeat(node, 1, 1)
    return node if isinstance(node, Repeat) and isinstance(node.inner, Leaf) else None


def loosened(node: Node, *, start: bool, end: bool) -> Node:
    """Without what may be nothing at an end that is bound to nothing: x.* is somewhere where x is."""
    parts: list[Node] = list(node.parts) if isinstance(node, Chain) else [node]
    while len(parts) > 1 and not end and nullable(parts[-1]):
        parts.pop()
    while len(parts) > 1 and not start and nullable(parts[0]):
        parts.pop(0)
    for at, loose in ((-1, not end), (0, not start)):
        last = parts[at]
        if loose and isinstance(last, Repeat) and last.least and last.most != last.least:
            parts[at] = replace(last, most=last.least) if last.least > 1 else last.inner
    return chain(parts)
