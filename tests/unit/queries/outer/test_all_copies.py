# ruff: noqa: E501 (one question, one line)
"""All copies in one statement give each copy what a statement of its own would."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from tests.statistical.test_outer_coverage import counts, stored
from tests.unit.queries.outer.test_equal_to_duckdb import BY_BOTH, BY_REGION, SHAPES

from dalenius.queries.answering import Answer
from dalenius.queries.ask import Ask
from dalenius.queries.outer import noise_copies
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.outer.computing import Given, compute_outer
from dalenius.queries.outer.noise_copies import draw_copies
from dalenius.queries.rules.price import price_plan

COPIES = 25 if os.environ.get("DALENIUS_LONG") else 5
MORE = [
    f"WITH t AS ({BY_BOTH}), u AS (SELECT region, SUM(n) AS s FROM t GROUP BY region) SELECT t.region, n / s FROM t JOIN u USING (region)",
    f"WITH t AS ({BY_BOTH}), u AS (SELECT region, SUM(n) AS s FROM t GROUP BY 1) SELECT t.region, n, s FROM t LEFT JOIN u ON u.region = t.region AND s > 900",
    f"WITH t AS ({BY_REGION}) SELECT a.region, b.region, a.n - b.n FROM t a, t b WHERE a.region < b.region",
    f"WITH t AS ({BY_REGION}) SELECT region, n FROM t QUALIFY RANK() OVER (ORDER BY n) < 4 UNION ALL SELECT 'mean', AVG(n) FROM t",
    "SELECT region, RANK() OVER w AS r, SUM(COUNT(*)) OVER (w ROWS 1 PRECEDING) FROM orders GROUP BY 1 WINDOW w AS (ORDER BY COUNT(*))",
    f"SELECT name, n * 1.0 / SUM(n) OVER () FROM ({BY_REGION}) JOIN regions ON code = region",
    f"SELECT * FROM (SELECT region, n, ROW_NUMBER() OVER (ORDER BY n) AS r FROM ({BY_REGION})) WHERE r <= 2",
]


def planned(shop, question):
    found = plan_any(shop.ana._asker, Ask(question, epsilon=1.0))
    assert isinstance(found, OuterPlanned)
    return found


@pytest.mark.usefixtures("inside")
def test_one_statement_for_all_copies_gives_what_one_for_each_does(shop):
    looked = 0
    shapes = SHAPES if os.environ.get("DALENIUS_LONG") else SHAPES[::3]
    for question in [*(shape[1] for shape in shapes), *MORE]:
        found = planned(shop, question)
        if found.split.outer.at_once is None:
            assert question not in MORE, f"not in one statement: {question}"
            continue
        given = []
        for inner in found.split.inners:
            content = stored(inner.plan, price_plan(inner.plan, 20.0), counts(inner.plan), np.random.default_rng(7))
            answer = Answer.read(inner.plan, content, 0.95)
            table = answer.table()
            given.append(Given(inner.name, inner.plan, table.rows, draw_copies(answer, table, content, COPIES)))
        one = compute_outer(found.split.outer, given, found.publics, question, 0.95)
        other = compute_outer(replace(found.split.outer, at_once=None), given, found.publics, question, 0.95)
        assert one.rows == other.rows and one.errors is not None
        for row, again in zip(one.errors, other.errors or (), strict=True):
            for cell, same in zip(row, again, strict=True):
                assert (cell is None) == (same is None), question
                assert cell is None or cell == pytest.approx(same, rel=1e-9, abs=1e-9), question
        looked += 1
    assert looked >= len(MORE) + 0.7 * len(shapes)


@pytest.mark.usefixtures("inside")
def test_few_rows_of_many_groups_take_little(shop, monkeypatch):
    """What HAVING leaves out is drawn, too, so that parts move together; but not of everything, however much that is."""
    sizes, noise = [], noise_copies._noise

    def counted(law, size, chance):
        sizes.append(size)
        return noise(law, size, chance)

    monkeypatch.setattr(noise_copies, "_noise", counted)
    sums = ", ".join(f"SUM(CASE WHEN amount > {at} THEN 1 ELSE 0 END)" for at in range(15))
    for parts in (sums[: sums.index(",")], sums):
        sizes.clear()
        shop.ana.ask(
            f"SELECT {parts}, RANK() OVER (ORDER BY day) FROM orders GROUP BY day, region, status "
            "HAVING day = DATE '2025-03-03' AND region = 'n'",
            epsilon=4.0,
        )
        assert 0 < sum(sizes) <= noise_copies.MOST_DRAWN
