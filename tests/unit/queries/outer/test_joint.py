# ruff: noqa: E501 (one question, one line)
"""Several questions at one price: under both ways of accounting, with found keys and periods, of one data set only."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pyarrow as pa
import pytest
from tests.shop import Shop

from dalenius.errors import DaleniusError
from dalenius.queries.ask import Ask
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.rules.price import price_plan


def rows(first):
    """600 rows of 200 people, of whom each table has others."""
    return pa.table(
        {
            "user_id": [first + at % 200 for at in range(600)],
            "kind": ["ab"[at % 2] for at in range(600)],
            "word": [f"word {at % 3}" for at in range(600)],
            "day": [date(2025, 1, 1) + timedelta(days=at % 60) for at in range(600)],
        }
    )


POLICY = """
unit = "user_id"
[budget]
epsilon = 1000.0
{budget}
[analysts.ana]
epsilon = 1000.0
[columns.kind]
type = "category"
keys = ["a", "b"]
[columns.word]
type = "text"
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-03-01"]
[contribution]
rows = 3
groups = 3
"""
BUDGETS = {
    "gauss": "delta = 1e-6",
    "pure": 'accounting = "pure"',
    "monthly": 'delta = 1e-6\n[budget.period]\ncolumn = "day"\nevery = "month"',
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    tables = {
        name: (rows(1000 * at), POLICY.replace("{budget}", budget)) for at, (name, budget) in enumerate(BUDGETS.items())
    }
    return Shop.of(tmp_path_factory.mktemp("joint"), tables)


def spent(shop, name):
    return shop.ana.budget()[name]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", ["gauss", "pure"])
def test_all_parts_together_cost_what_was_typed(shop, name):
    question = f"SELECT kind, COUNT(*) AS n FROM {name} GROUP BY kind UNION ALL SELECT 'all', COUNT(*) FROM {name}"
    release = shop.ana.ask(question, epsilon=20.0)
    assert release.charge["epsilon"] == 20.0 and spent(shop, name).charges == 1
    assert release.guarantee["epsilon"] == 20.0
    alone = shop.ana.preview(f"SELECT COUNT(*) FROM {name}", epsilon=20.0).choices[0].noise_error[0]
    # half of ρ is √2 times the noise, half of ε is twice; in whole rows, and from 400 copies
    assert release.noise_error[2][1] == pytest.approx(alone * (2 if name == "pure" else 2**0.5), abs=2)
    assert [row[1] for row in release.rows] == pytest.approx([300, 300, 600], abs=10)


@pytest.mark.usefixtures("inside")
def test_delta_is_shared_by_the_parts_that_find_keys(shop):
    question = (
        "SELECT word, COUNT(*) AS n FROM gauss GROUP BY word UNION ALL SELECT kind, COUNT(*) FROM gauss GROUP BY kind"
    )
    expected = shop.ana.preview(question, epsilon=30.0).choices[0].delta
    release = shop.ana.ask(question, epsilon=30.0)
    assert {row[0] for row in release.rows} == {"word 0", "word 1", "word 2", "a", "b"}
    assert 0 < release.charge["delta"] == expected
    twice = f"{question} UNION ALL SELECT word, COUNT(*) FROM gauss WHERE kind = 'a' GROUP BY word"
    assert shop.ana.preview(twice, epsilon=30.0, delta=1e-8).choices[0].delta == pytest.approx(1e-8)
    assert len(shop.ana.ask(twice, epsilon=30.0, delta=1e-8).rows) == 8
    assert shop.ana.history()[-1]["charge"]["delta"] == pytest.approx(1e-8)


@pytest.mark.usefixtures("inside")
def test_all_periods_that_a_part_reads_are_charged(shop):
    question = (
        "SELECT 'january', COUNT(*) AS n FROM monthly WHERE day < '2025-02-01' "
        "UNION ALL SELECT 'february', COUNT(*) FROM monthly WHERE day >= '2025-02-01' AND day < '2025-03-01'"
    )
    release = shop.ana.ask(question, epsilon=20.0)
    assert [row[0] for row in release.rows] == ["january", "february"]
    ledger = shop.ana._asker.ledger
    left = {
        month: ledger.balance("monthly", "ana", month).remaining_epsilon for month in ("2025-01", "2025-02", "2025-03")
    }
    assert left["2025-01"] == left["2025-02"] < left["2025-03"]


@pytest.mark.usefixtures("inside")
def test_parts_of_different_data_sets_are_refused(shop):
    before = {name: spent(shop, name).charges for name in BUDGETS}
    for question in (
        "SELECT COUNT(*) FROM gauss UNION ALL SELECT COUNT(*) FROM pure",
        "SELECT kind, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM pure) FROM gauss GROUP BY kind",
        (
            "WITH a AS (SELECT kind, COUNT(*) n FROM gauss GROUP BY 1), b AS (SELECT kind, COUNT(*) n FROM pure GROUP BY 1) "
            "SELECT a.n - b.n FROM a JOIN b USING (kind)"
        ),
    ):
        for ask in (shop.ana.ask, shop.ana.preview):
            with pytest.raises(DaleniusError, match="different data sets: gauss, pure"):
                ask(question, epsilon=1.0)
    assert before == {name: spent(shop, name).charges for name in BUDGETS}


@pytest.mark.usefixtures("inside")
def test_notes_reckon_with_the_delta_of_one_part(shop):
    one = "SELECT word, COUNT(*) AS n FROM gauss GROUP BY word"
    both = f"{one} UNION ALL SELECT word, COUNT(*) FROM gauss WHERE kind = 'a' GROUP BY word"

    def needed(notes):
        # Where noise leaves one part without any key, that part has a sentence of its own, with the same number.
        said = [note for note in notes if "needs about" in note]
        (found,) = {int(re.findall(r"(\d+)(?: units[.,]| at ε)", each)[0]) for each in said}
        return found

    asked, plan = shop.ana.ask(both, epsilon=1.0, delta=1e-8), planned_parts(shop, both)
    assert needed(asked.notes) == needed(shop.ana.preview(both, epsilon=1.0, delta=1e-8).notes)
    assert needed(asked.notes) == price_plan(plan, 1.0, 5e-9).least_units > price_plan(plan, 1.0, 1e-8).least_units


def planned_parts(shop, question):
    found = plan_any(shop.ana._asker, Ask(question, epsilon=25.0))
    assert isinstance(found, OuterPlanned) and len(found.parts) == 2
    return found.parts[0].plan


@pytest.mark.usefixtures("inside")
def test_contribution_bounds_hold_in_the_part_in_which_they_stand(shop):
    bounds = "contribution_bounds_per_group => (0, {})"
    question = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 20) kind, COUNT(*, {bounds.format(1)}) AS s FROM gauss "
        f"GROUP BY kind UNION ALL SELECT 'all', COUNT(*, {bounds.format(2)}) FROM gauss"
    )
    found = plan_any(shop.ana._asker, Ask(question, epsilon=20.0))
    assert isinstance(found, OuterPlanned)
    clips = sorted(float(each.clip * each.step) for part in found.parts for each in part.plan.measures)
    assert clips == [1.0, 2.0]
    assert len(shop.ana.ask(question).rows) == 3
