"""All scalar functions on odd values: what every engine must give, to the bit, or groups that one lists another misses.

``python -m tests.function_values FILE`` writes the table that is committed. To be run only where a function changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.measuring.engines.sources import Reference, reference
from dalenius.measuring.expressions import Call, Expression, Key, Literal, Type
from dalenius.measuring.functions import FUNCTIONS, PARTS, UNITS
from dalenius.queries.rules.total import make_total

N, B, T, D, M = Type.NUMBER, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.DATETIME
ARROW = {N: pa.float64(), B: pa.bool_(), T: pa.string(), D: pa.date32(), M: pa.timestamp("us")}
ODD: dict[Type, tuple[Any, ...]] = {
    N: (0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 7.0, -7.0, 1e15 + 0.5, 2.0**53 + 2, 1e308, 5e-324, None),
    B: (True, False, None),
    T: (
        *(
            "",
            " ",
            " a ",
            "ab",
            "aB%_",
            "Ä",
            "ß",
            "İ",
            "🙂🙂",
            "1e5",
            "-0.0",
            "2024-02-29",
            "2024-02-30",
            "true",
            "x" * 201,
        ),
        None,
    ),
    D: (date(1, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(2024, 12, 30), date(9999, 12, 31), None),
    M: (
        *map(datetime.fromisoformat, ("0001-01-01", "1969-12-31T23:59:59.999999", "2024-02-29T12:30")),
        *(datetime.fromisoformat("9999-12-31T23:59:59"), None),
    ),
}
# Arguments that have to be constants, by function and place.
CONSTANTS: dict[tuple[str, int], tuple[Any, ...]] = {
    ("round", 1): (-1.0, 0.0, 2.0),
    ("like", 1): ("%a%", "_", "", "%Ä"),
    ("ilike", 1): ("%A%", "_", "%ä"),
    ("contains", 1): ("a", ""),
    ("starts_with", 1): ("a", ""),
    ("ends_with", 1): ("b", ""),
    ("left", 1): (0.0, 1.0, 3.0, -1.0),
    ("right", 1): (0.0, 1.0, 3.0, -1.0),
    ("substring", 1): (1.0, 2.0),
    ("substring", 2): (0.0, 2.0),
    ("regexp", 1): ("a", "^(?:[^\\x{a}])$", "(?:[\\x{c4}\\x{e4}])", "^(?:[^a-z\\x{20}]+)$", "(?:[^ab][0-9]?)$"),
    ("trim", 1): ("a", " 🙂"),
    ("ltrim", 1): ("a",),
    ("rtrim", 1): ("%_", "🙂"),
    ("position", 1): ("a", "", "🙂"),
    ("split_part", 1): ("a", " ", "🙂"),
    ("split_part", 2): (1.0, -1.0, 3.0),
    ("replace", 1): ("a", "🙂"),
    ("replace", 2): ("", "bb"),
    ("date_part", 0): PARTS,
    ("date_trunc", 0): UNITS,
    ("date_add", 0): UNITS,
    ("date_add", 2): (-1.0, 1.0, 25.0),
    ("date_diff", 0): UNITS,
    ("date_sub", 0): UNITS,
    ("strftime", 1): ("%Y-%m", "%d.%m.%y %H:%M:%S %j"),
}
SECOND: dict[Type, tuple[Any, ...]] = {  # of two varying arguments
    N: (0.0, -0.0, 3.0, -2.0, 0.5, 1e308, None),
    B: (True, False, None),
    T: ("", "ab", "Ä", None),
    D: (date(1, 1, 1), date(2024, 2, 29), None),
    M: (datetime.fromisoformat("1969-12-31T23:00"), datetime.fromisoformat("9999-12-31T23:59:59"), None),
}


def cases() -> Iterator[tuple[str, Call, list[tuple[Any, ...]]]]:
    """A name, a call, and the values of its varying arguments (keys k0, k1 …)."""
    for name, function in FUNCTIONS.items():
        counts = sorted({function.least or len(function.takes), len(function.takes) + function.many})
        for count in counts:
            takes = [function.takes[min(at, len(function.takes) - 1)] for at in range(count)]
            if name == "case":
                takes = [frozenset({B}), frozenset({N, T, D}), frozenset({N, T, D})]
            for type_ in sorted(frozenset().union(*takes), key=str):
                yield from _typed(name, takes, type_, count if name != "case" else 3)


def _typed(
    name: str, takes: Sequence[frozenset[Type]], type_: Type, count: int
) -> Iterator[tuple[str, Call, list[tuple[Any, ...]]]]:
    """With one type wherever several are allowed."""
    types = [type_ if type_ in each else min(each, key=str) for each in takes]
    if len(takes[0]) == 1 and type_ not in takes[0] and not any(type_ in each for each in takes):
        return
    if all(len(each) == 1 for each in takes) and type_ != types[0]:
        return
    places = [at for at in range(count) if (name, at) not in CONSTANTS]
    given = FUNCTIONS[name].gives or types[-1 if name != "date_add" else 1]
    for constants in product(*(CONSTANTS[name, at] for at in range(count) if (name, at) in CONSTANTS)):
        left, arguments = list(constants), list[Expression]()
        for at in range(count):
            if at in places:
                arguments.append(Key(places.index(at), types[at]))
            else:
                value = left.pop(0)
                arguments.append(Literal(value, N if isinstance(value, float) else T))
        odd = [ODD[types[at]] if place == 0 else SECOND[types[at]] for place, at in enumerate(places)]
        shown = ", ".join(str(each.value) if isinstance(each, Literal) else each.type.value for each in arguments)
        yield f"{name}({shown})", Call(name, tuple(arguments), given), list(product(*odd))


def values_of(engine: Reference) -> dict[str, list[Any]]:
    """The table."""
    found = {}
    for name, call, rows in cases():
        columns = {"place": pa.array(range(len(rows)))}
        types = {each.number: each.type for each in call.arguments if isinstance(each, Key)}
        for number, type_ in types.items():
            columns[f"k{number}"] = pa.array([row[number] for row in rows], ARROW[type_])
        found[name] = [_written(each) for each in engine.evaluated(make_total(call), pa.table(columns), [])]
    return found


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()  # every bit of it, the sign of 0 too
    return value.isoformat() if isinstance(value, date) else value


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in values_of(reference()).items()]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n")
