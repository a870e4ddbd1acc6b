"""A canary in synthetic tables: 2,000 models of a table of 2,000 rows, half of them with one person more.

The person has 1,000 rows that are all the same, with values that nobody else has. What is looked at in a model is what
it says of these values: how many rows have each, and how many have all of them. An audit of a sound one fails with
chance at most 1e-6; of a planted bug all models of one side are unlike those of the other.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.accounting import events
from dalenius.audit.lower_bounds.bounding import lower_bound
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.curator import Curator
from dalenius.measuring.expressions import TRUE
from dalenius.releasing.leaving import Look
from dalenius.synthesis.generators.tree import tree
from dalenius.synthesis.kind import leaving_of
from dalenius.synthesis.request import SynthesisAsk
from dalenius.synthesis.rows import Limit, UnitMeasurer, read_rows

pytestmark = pytest.mark.statistical

PEOPLE, EACH, CANARY, LIMIT = 1_000, 2, 1_000, 10
EPSILON, DELTA, CONFIDENCE = 4.0, 1e-6, 1 - 1e-6
SAMPLES = 1_000  # models of each side
COLUMNS = {"ward": ("a", "b", "c", "never"), "drug": ("x", "y", "never"), "age": tuple(range(10)), "sex": ("f", "m")}
VALUES = {"ward": "never", "drug": "never", "age": 9, "sex": "m"}  # the canary's


def rows_of(canary):
    chance, found = random.Random(7), []
    for person in range(PEOPLE):
        for _ in range(EACH):
            age = min(8, int(chance.gauss(4, 2) % 9))
            ward = "a" if age < 3 else chance.choice("abc")
            found.append({"person": person, "ward": ward, "drug": chance.choice("xy"), "age": age, "sex": "f"})
    return found + [{"person": PEOPLE, **VALUES}] * (CANARY if canary else 0)


def side_of(folder, canary):
    """The plan, and all that is read of one side."""
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows_of(canary)), folder / "t.parquet")
    columns = "".join(
        f'[columns.{name}]\ntype = "{"integer" if name == "age" else "category"}"\n'
        f"keys = {list(keys)!r}\ndefault = {keys[0]!r}\n".replace("'", '"')
        for name, keys in COLUMNS.items()
    )
    (folder / "t.toml").write_text(
        '[table]\nname = "t"\nsource = "t.parquet"\nunit = "person"\n[budget]\nepsilon = 9.0\n'
        f"delta = {DELTA}\n[analysts.ana]\nepsilon = 9.0\n[contribution]\nrows = {LIMIT}\n{columns}"
    )
    curator = Curator(folder / "home")
    curator.protect(folder / "t.toml")
    plan = leaving_of(curator.analyst("ana")._asker, SynthesisAsk("t", EPSILON, "tree")).plan
    return plan, curator.engines.of(curator.tables()[0].fingerprint)


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("canary")
    return [side_of(folder / f"{canary}", canary) for canary in (True, False)]


def audit(sides, samples, *, whole=False):
    """ε̂ of models that are trained again and again on both sides; ``whole``: rows are read for each again."""
    rho = Fraction(sides[0][0].cost(EPSILON).rho)
    read = [read_rows(p.table, p.domain, TRUE, p.limit, e, "salt", 60.0) for p, e in sides]

    def draw(side, count):
        plan, (codes, weights) = sides[side][0], read[side]
        at = [each.keys.index(VALUES[each.name]) for each in plan.domain.columns]
        found = []
        for number in range(count):
            if whole:
                model = plan.fitted(Look(sides[side][1], EPSILON, 0.0, "salt", 60.0), rho, 0.0).model
            else:
                measurer = UnitMeasurer(plan.domain.domain, codes, weights, plan.limit, rho)
                model = tree(measurer, np.random.default_rng(number))
            found.append(said(model, at))
        return np.array(found)

    return lower_bound(draw, Claim(events.Zcdp(rho), DELTA), samples=samples, confidence=CONFIDENCE)


def said(model, values):
    """How many rows a tree says there are, with each value of the canary and with all of them."""
    found, joint, shares = [model.rows], 1.0, {}
    for step in model.steps:
        table = step.table / max(1e-300, step.table.sum())
        margin = table if table.ndim == 1 else table.sum(axis=0)
        shares[step.column] = float(margin[values[step.column]])
        if step.parents:
            (parent,) = step.parents
            own = table[values[parent]]
            joint *= float(own[values[step.column]] / max(1e-300, own.sum()))
        else:
            joint *= shares[step.column]
    found += [model.rows * shares[at] for at in sorted(shares)]
    return [*found, model.rows * joint]


def test_a_person_with_a_thousand_rows_shows_in_a_model_by_no_more_than_its_price(sides):
    found = audit(sides, SAMPLES)
    assert not found.broken, found
    assert found.main.epsilon <= found.main.claimed <= EPSILON


@pytest.mark.skipif(not LONG, reason="a minute")
def test_nor_does_it_in_models_that_are_read_counted_and_fitted_each_by_itself(sides):
    found = audit(sides, SAMPLES, whole=True)
    assert not found.broken, found


def no_clipping(patch):
    patch.setattr(Limit, "weigh", lambda limit, held: np.full(len(held), limit.whole, np.int64))


def noise_of_one_row_where_units_have_many(patch):
    patch.setattr(Limit, "of_table", property(lambda limit: limit.whole**2))


PLANTED = [no_clipping, noise_of_one_row_where_units_have_many]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_shows(plant, monkeypatch, sides):
    plant(monkeypatch)
    found = audit(sides, SAMPLES)
    assert found.broken and found.worst.epsilon > found.worst.claimed, found
