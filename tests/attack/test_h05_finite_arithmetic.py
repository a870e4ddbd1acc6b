"""H5: sums are exact. Whatever the type and size of the values, one unit moves them by no more than is claimed.

In floating point 1e16 + 1 − 1e16 depends on the order, and a sum that overflows jumps by more than any one row is
worth. Here each row is a clipped whole number of steps, and they are added in 128 bits.
"""

from __future__ import annotations

import decimal
import math
import random
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.attack.curators import curator_of, integers_by, integers_of, neighbours, plan_of, too_far
from tests.conftest import LONG

from dalenius import Curator
from dalenius.measuring.engines.duckdb.statements.sums import Compiler

decimal.getcontext().prec = 60
LARGEST_DECIMAL = Decimal(10) ** 38 - 1
MOST = 2**60  # what one row may add: more units than 16 pass 2^64
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{f"int{n}": (getattr(pa, f"int{n}")(), [2 ** (n - 1) - 1, -(2 ** (n - 1)), 100, 0, 1]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), [2**n - 1, 2**n - 2, 2 ** (n - 1), 0, 1]) for n in (8, 16, 32, 64)},
    "float32": (pa.float32(), [3.4028234663852886e38, -3.4028234663852886e38, 16777216.0, 1.0, 1e-45, 0.5]),
    "float64": (pa.float64(), [1.7976931348623157e308, -1.7976931348623157e308, 1e16, 1.0, -1e16, 5e-324, 0.5]),
    "decimal128(38, 10)": (
        pa.decimal128(38, 10),
        [LARGEST_DECIMAL.scaleb(-10), -LARGEST_DECIMAL.scaleb(-10), Decimal("1152921504606846975.5"), Decimal("0.5")],
    ),
    "decimal128(38, 0)": (pa.decimal128(38, 0), [LARGEST_DECIMAL, -LARGEST_DECIMAL, Decimal(2**63), Decimal(2**60)]),
    "decimal128(9, 2)": (pa.decimal128(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("0.50")]),
}
COLUMN = {name: f"x{at}" for at, name in enumerate(TYPES)}
COLUMNS = "".join(f'[columns.{x}]\ntype = "integer"\nbounds = [{-MOST}, {MOST}]\n' for x in COLUMN.values())
COLUMNS += '[columns.g]\ntype = "category"\nkeys = ["a", "b"]\n'
QUESTIONS = [
    "SELECT SUM({x}) FROM t",
    "SELECT g, SUM({x}), COUNT(*) FROM t GROUP BY g",
    "SELECT AVG({x}) FROM t",
    "SELECT g, VAR_POP({x}) FROM t GROUP BY g",
    "SELECT SUM(LEAST(GREATEST({x}, -1000), 1000) * 3) FROM t",
]
LARGEST = max(len(values) for _, values in TYPES.values())


def table(units: list[int], held: dict[str, list[Any]]) -> pa.Table:
    """A column for each type, which holds these values in turn, in as many rows as there are units."""
    columns = {COLUMN[name]: list(islice(cycle(values), len(units))) for name, values in held.items()}
    typed = {x: pa.array(columns[x], TYPES[name][0]) for name, x in COLUMN.items()}
    return pa.table({"id": units, **typed, "g": ["ab"[unit % 2] for unit in units]})


ALL = {name: values for name, (_, values) in TYPES.items()}


def crowd() -> pa.Table:
    """Every value at least forty times, each row another unit's: where rows may add 2^60, their sum passes 2^64."""
    return table(list(range(LARGEST * 40)), ALL)


def asked(name: str) -> list[str]:
    """The questions about the column of a type."""
    return [question.format(x=COLUMN[name]) for question in QUESTIONS]


def by_hand(values: list[Any]) -> int:
    """The sum that the policy promises, in Python's integers: each a double, rounded and clipped."""
    return sum(max(-MOST, min(MOST, math.floor(float(value) + 0.5))) for value in values)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """`both(accounting)`: a crowd, and the same with one more unit, which holds every value of each type 30 times."""

    @cache
    def found(accounting: str) -> tuple[Curator, Curator]:
        victim = table([10**6] * (LARGEST * 30), ALL)
        folder = tmp_path_factory.mktemp(accounting)
        return neighbours(folder, crowd(), victim, COLUMNS, contribution="rows = 3", accounting=accounting)

    return found


WIDEST = ["int64", "uint64", "float64", "decimal128(38, 0)"]


@pytest.mark.parametrize(
    ("name", "accounting"),
    [(name, "zcdp") for name in TYPES] + [(name, "pure") for name in (TYPES if LONG else WIDEST)],
)
def test_one_more_unit_moves_sums_by_at_most_the_sensitivity(both, name, accounting):
    pair = both(accounting)
    for question in asked(name):
        plan = plan_of(pair[0], question)
        assert too_far(plan, *(integers_by(each, plan) for each in pair)) == []


ROWS = 19


@pytest.fixture(scope="module")
def largest(tmp_path_factory):
    """Rows that hold the largest value of each type, numbered."""
    rows = table(list(range(ROWS)), {name: [max(values)] for name, values in ALL.items()})
    numbered = f'{COLUMNS}[columns.at]\ntype = "integer"\nbounds = [0, {ROWS}]\n'
    rows = rows.append_column("at", pa.array(range(ROWS)))
    return curator_of(tmp_path_factory.mktemp("largest"), rows, numbered, contribution="rows = 1")


@pytest.mark.parametrize("name", TYPES)
def test_each_further_row_moves_the_sum_by_at_most_one_rows_worth(largest, name):
    """k rows and k + 1, across all that types can hold: no jump where 2^63 or 2^64 is passed."""
    values, sums = ALL[name], []
    for k in range(14, ROWS + 1):
        plan = plan_of(largest, f"{asked(name)[0]} WHERE at < {k}")
        [[found]] = integers_by(largest, plan)
        assert found == by_hand([max(values)] * k)
        sums.append(found)
    assert plan.measures[0].clip == MOST
    assert all(0 <= after - before <= MOST for before, after in pairwise(sums))
    if max(values) > MOST:
        assert sums[0] < 2**64 < sums[-1]


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """The crowd in several orders."""
    rows, folder = crowd(), tmp_path_factory.mktemp("shuffled")
    places, found = list(range(rows.num_rows)), []
    for seed in range(3 if LONG else 2):
        random.Random(seed).shuffle(places)
        found.append(curator_of(folder / str(seed), rows.take(places), COLUMNS, contribution="rows = 1"))
    return found


@pytest.mark.parametrize("name", TYPES)
def test_sums_are_exact_and_the_same_in_any_order(shuffled, name):
    plans = [plan_of(shuffled[0], question) for question in asked(name)]
    found = [[integers_by(curator, plan) for plan in plans] for curator in shuffled]
    assert all(each == found[0] for each in found)
    assert found[0][0] == [[by_hand(list(islice(cycle(ALL[name]), LARGEST * 40)))]]


SUM = "SELECT SUM(x) FROM t"


def cancelling(folder: Path, rows: int) -> list[list[list[int]]]:
    """The sums of one unit's 1e16, 1 and −1e16, each so many times, in several orders. Each ought to be ``rows``."""
    values = [1e16, 1.0, -1e16] * rows
    found = []
    for at, order in enumerate([sorted(values), sorted(values, reverse=True), values, sorted(values, key=abs)]):
        data = pa.table({"id": [7] * len(order), "x": order})
        spec = f'[columns.x]\ntype = "integer"\nbounds = [{-(2**55)}, {2**55}]'
        curator = curator_of(folder / str(at), data, spec, contribution="rows = 100")
        found.append(integers_of(curator, SUM))
    return found


@pytest.mark.parametrize("rows", [1, 2, 3, 33] if LONG else [1, 33])
def test_mixed_magnitudes_of_one_unit_are_summed_exactly(tmp_path, rows):
    """1e16 + 1 − 1e16 is 0 or 1 in doubles, by order."""
    assert cancelling(tmp_path, rows) == [[[rows]]] * 4


def test_steps_of_any_size_give_whole_numbers(tmp_path):
    """0.1 + 0.2 and its like: each value is rounded to its step before anything is added."""
    values = [0.1, 0.2, 0.3, 0.7, 1e-9, 4999.995, 5000.0, 1e300, -1.0]
    for at, step in enumerate(["0.01", "0.1", "1", "0.000001"]):
        spec = f'[columns.x]\ntype = "number"\nbounds = [0, 5000]\nstep = {step}'
        data = pa.table({"id": list(range(len(values))), "x": values})
        curator = curator_of(tmp_path / str(at), data, spec, contribution="rows = 1")
        expected = sum(math.floor(max(0.0, min(5000.0, each)) / float(Fraction(step)) + 0.5) for each in values)
        assert integers_of(curator, SUM) == [[expected]]


# --- the checks reject sums in the type of the column


def test_a_sum_of_doubles_is_noticed(tmp_path, monkeypatch):
    sums = Compiler.sums

    def in_doubles(self: Compiler) -> str:
        return re.sub(r"\bsum\((\w+)\)", r"CAST(sum(CAST(\1 AS DOUBLE)) AS HUGEINT)", sums(self))

    monkeypatch.setattr(Compiler, "sums", in_doubles)
    assert cancelling(tmp_path, 33) != [[[33]]] * 4


def test_a_sum_that_wraps_is_noticed():
    """The check of further rows, on sums as 64 bits would give them."""
    sums = [(MOST * k + 2**63) % 2**64 - 2**63 for k in range(1, 20)]
    assert not all(0 <= after - before <= MOST for before, after in pairwise(sums))


def test_a_clip_that_is_missing_is_noticed(both, monkeypatch):
    monkeypatch.setattr(Compiler, "truncated", lambda _, value, *__: value)
    pair, question = both("zcdp"), asked("uint64")[0]
    plan = plan_of(pair[0], question)
    assert too_far(plan, *(integers_of(each, question) for each in pair))
