"""Made-up questions with outer parts have the answers that plain DuckDB gives on the rows, where noise is negligible.

10,000 of them in the long form; always the same ones.
"""

from __future__ import annotations

import os
from decimal import Decimal
from random import Random

import duckdb
import pyarrow as pa
import pytest
from tests.shop import BUDGET, Shop, data
from tests.unit.queries.outer.fuzzed import Maker

from dalenius.queries.outer import noise_copies

CASES = 10_000 if os.environ.get("DALENIUS_LONG") else 16
COPIED = 8  # of so many, one has copies computed, too
EXACT = 1e9


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """No amount is NULL: where all of a group are, its sum is 0 here and NULL in DuckDB."""
    tables = data()
    amounts = pa.array([(7 * at % 60) / 2 for at in range(30)])
    tables["orders"] = tables["orders"].set_column(2, "amount", amounts)
    budget = BUDGET.replace("epsilon = 50.0", "epsilon = 1e15")
    return Shop.protected(tmp_path_factory.mktemp("fuzzed"), tables, rows=30, budget=budget)


def told(rows):
    """Rows that can be compared and sorted."""

    def cell(value):
        if value is None or isinstance(value, bool):
            return 0, str(value)
        return (1, round(float(value), 4) + 0.0) if isinstance(value, int | float | Decimal) else (2, str(value))

    return [tuple(map(cell, row)) for row in rows]


@pytest.mark.usefixtures("inside")
def test_made_up_questions_have_the_answers_of_the_rows(exact, monkeypatch):
    compared, cells = 0, noise_copies.MOST_CELLS
    for seed in range(CASES):
        question, ordered = Maker(Random(seed)).question()
        try:
            expected = told(exact.plain(question))
        except duckdb.Error:  # what is drawn may have no meaning
            continue
        monkeypatch.setattr(noise_copies, "MOST_CELLS", cells if seed % COPIED == 0 else 0)
        found = told(exact.ana.ask(question, epsilon=EXACT).rows)
        assert sorted(found) == sorted(expected), f"{seed}: {question}"
        assert not ordered or found == expected, f"{seed}, in another order: {question}"
        compared += 1
    assert compared >= 0.9 * CASES
