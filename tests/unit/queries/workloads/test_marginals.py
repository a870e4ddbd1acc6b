"""Tables of a few attributes each, where there are too many cells: exact, within the limit, released as all else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.unit.queries.workloads.tables import Protected, rows_of
from tests.unit.queries.workloads.test_linear import wrong_terms

from dalenius.accounting.neighbors import Neighbors
from dalenius.curator import Curator
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.marginals import Weighed
from dalenius.queries.workloads.measuring import counted_integers, measured_of
from dalenius.queries.workloads.request import WorkloadAsk

KEYS = ("sex", "region", "smoker", "FLOOR(age / 20)")
PAIRS = tuple(f"SELECT {', '.join(pair)}, COUNT(*) AS n FROM people GROUP BY 1, 2" for pair in combinations(KEYS, 2))
MORE = (
    "SELECT COUNT(*) AS n FROM people WHERE bmi < 25",
    "SELECT sex, COUNT(*) AS n FROM people WHERE bmi >= 30 GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people",
)


@pytest.fixture(autouse=True)
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.queries.workloads.cells.MOST_CELLS", 100)


def planned(curator: Curator, asked: tuple[str, ...]) -> object:
    return plan_asked(curator.analyst("ana")._asker, WorkloadAsk.of({"questions": list(asked), "epsilon": 1.0}))


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_margins_are_the_exact_integers_of_each_question(protect: Protected, accounting: str) -> None:
    curator = protect(accounting)
    found = plan_asked(
        curator.analyst("ana")._asker, WorkloadAsk.of({"questions": [*PAIRS, *MORE], "epsilon": 1.0})
    ).plan
    (block,) = found.blocks
    assert isinstance(block.counted[0], Weighed) and not found.beside
    assert not wrong_terms(curator, [*PAIRS, *MORE])


@pytest.mark.parametrize("each", [3, 40])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_a_unit_changes_no_more_than_is_claimed_and_a_heavy_one_nearly_that(
    protect: Protected, accounting: str, each: int
) -> None:
    """One unit alone: what is measured is what it changes."""
    curator = protect(accounting, rows=4, table=rows_of(units=1, each=each))
    asker = curator.analyst("ana")._asker
    (block,) = plan_asked(asker, WorkloadAsk.of({"questions": list(PAIRS), "epsilon": 1.0})).plan.blocks
    engine = block.planned.snapshot.engine(asker.engines)
    counted = counted_integers(block, engine, "salt", 60.0)
    (part,) = block.parts
    norm = "l1" if accounting == "pure" else "l2"
    measured = [int(one) for one in measured_of(part, block, counted)]
    seen = sum(map(abs, measured)) if norm == "l1" else sum(one * one for one in measured)
    assert 0 < seen <= part.change(norm, Neighbors.ADD_REMOVE)
    tables = counted[part.counted]
    totals = {int(table.sum()) for table in tables.values()}
    assert len(totals) == 1  # of every table: they are margins of one vector
    assert 0.99 * min(each, 4) <= totals.pop() / 2**part.measure.bits <= min(each, 4)


def test_a_limit_that_is_not_kept_would_show(protect: Protected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: rows of a heavy unit weigh as much as any."""
    curator = protect("pure", rows=4, table=rows_of(units=1, each=40))
    asker = curator.analyst("ana")._asker
    (block,) = plan_asked(asker, WorkloadAsk.of({"questions": list(PAIRS), "epsilon": 1.0})).plan.blocks
    monkeypatch.setattr("numpy.minimum", lambda whole, _: np.full_like(_, whole))
    engine = block.planned.snapshot.engine(asker.engines)
    (part,) = block.parts
    measured = measured_of(part, block, counted_integers(block, engine, "salt", 60.0))
    assert sum(abs(int(one)) for one in measured) > part.change("l1", Neighbors.ADD_REMOVE)


def test_they_are_asked_as_all_else(protect: Protected) -> None:
    curator = protect()
    found = curator.analyst("ana").ask_many([*PAIRS, *MORE], epsilon=50.0)
    again = curator.analyst("ana").ask_many([*PAIRS, *MORE], epsilon=50.0)
    assert again.free and again[0].rows == found[0].rows
    by_sex = {row[:2]: row[2] for row in found[0].rows}
    assert sum(by_sex.values()) == pytest.approx(240 / 2, abs=60)  # half of them have one of the two
    assert curator.analyst("ana").ask(MORE[2], epsilon=1.0).free


def test_sums_and_wide_keys_are_asked_beside(protect: Protected) -> None:
    curator = protect()
    found = planned(
        curator, (*PAIRS, "SELECT sex, region, smoker, FLOOR(age / 20), SUM(pay) FROM people GROUP BY 1, 2, 3, 4")
    )
    assert found.plan.beside  # type: ignore[attr-defined]
