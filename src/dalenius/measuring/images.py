"""The values of functions: where the values of the inside are known, those of the outside are, by the engine itself.

For keys of number columns, whose own values are too many: FLOOR(x / 10) has few, by the bounds of x; FLOOR(x / 10) * 10
has as many, and no others. Every list here holds all values that a row can give, and hardly more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dalenius.measuring.expressions import Call, Expression, Literal, Scalar, Type
from dalenius.measuring.functions import Range, bounded, branches, conditions, whole

MOST = 200_000  # values of one expression


def values(
    key: Call, known: Callable[[Expression], list[Scalar] | None], ranges: Mapping[str, Range], integers: frozenset[str]
) -> list[Scalar] | None:
    """All values of a function, or None; ``known`` gives those of its arguments, where they can be listed."""
    varying = list(dict.fromkeys(each for each in key.arguments if not isinstance(each, Literal)))
    inside = known(varying[0]) if len(varying) == 1 else None
    if inside is not None and len(inside) <= MOST:
        return image(key, varying[0], inside, integers)
    match key:
        case Call(
            function="sub", arguments=(one, Call(function="mod", arguments=(other, Literal(value=float() as by))))
        ):
            if one == other and by:
                return _multiples(bounded(one, ranges), abs(by))
        case Call(function="round" | "to_integer", arguments=(one, *digits)) if one.type is Type.NUMBER:
            return _rounded(key, bounded(one, ranges), digits)
    return None


def image(key: Call, inside: Expression, given: Sequence[Scalar], integers: frozenset[str]) -> list[Scalar]:
    """The values of ``key`` where its argument ``inside`` has each of the values ``given``, or none."""
    import pyarrow as pa

    from dalenius.measuring.engines.sources import reference

    # −0.0 equals 0.0 but may be another text
    given = [*given, None, *([-0.0] if 0.0 in given and inside.type is Type.NUMBER else [])]
    found = reference().image(key, inside, pa.array(given, _arrow(inside.type)), whole=whole(inside, integers))
    return sorted(dict.fromkeys(each for each in found if _shown(each, key.type)))


def reachable(case: Call, ranges: Mapping[str, Range]) -> list[Expression]:
    """The values of a `case`, without those whose condition no row can meet."""
    *chosen, otherwise = branches(case)
    kept = [each for each, when in zip(chosen, conditions(case), strict=True) if not _never(when, ranges)]
    return [*kept, otherwise]


def _never(condition: Expression, ranges: Mapping[str, Range]) -> bool:
    """Whether a comparison is true for no values between the bounds."""
    if not isinstance(condition, Call) or condition.function not in {"lt", "le"}:
        return False
    if any(each.type is not Type.NUMBER for each in condition.arguments):
        return False
    less, more = (bounded(each, ranges) for each in condition.arguments)
    if less is None or more is None:
        return False
    return less[0] >= more[1] if condition.function == "lt" else less[0] > more[1]


def _multiples(found: Range | None, step: float) -> list[Scalar] | None:
    """x − x % step: what remains is exact (fmod), so the difference is a multiple of the step, rounded once."""
    if found is None:
        return None
    first, last = (math.trunc(Fraction(each) / Fraction(step)) for each in found)
    if last - first > MOST or max(abs(first), abs(last)) >= 2**53:  # past that, they are no doubles
        return None
    return [float(at) * step + 0.0 for at in range(first, last + 1)]


def _rounded(key: Call, found: Range | None, digits: Sequence[Expression]) -> list[Scalar] | None:
    """ROUND never falls: its values lie between those of the bounds, 10^−digits apart."""
    if found is None:
        return None
    ends = image(key, key.arguments[0], list(found), frozenset())
    places = int(digits[0].value) if digits and isinstance(digits[0], Literal) else 0  # type: ignore[arg-type]
    scale = 10 ** abs(places)
    steps = [float(end) * scale if places > 0 else float(end) / scale for end in ends]  # type: ignore[arg-type]
    if not steps or not all(abs(each) < 2**53 for each in steps) or steps[-1] - steps[0] > MOST:
        return None
    marks = range(round(steps[0]), round(steps[-1]) + 1)
    return [at / scale if places > 0 else float(at * scale) for at in marks]


def _shown(value: Any, type_: Type) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is not None and not (isinstance(value, str) and type_ in {Type.DATE, Type.DATETIME})


def _arrow(type_: Type) -> Any:
    import pyarrow as pa

    kinds = {Type.NUMBER: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.DATE: pa.date32()}
    return kinds.get(type_, pa.timestamp("us") if type_ is Type.DATETIME else pa.string())
