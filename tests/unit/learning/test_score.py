"""Scores of units held out: charged before the look, each unit once, and never of who was learned from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.learning.taught import curator_of, some_people
from tests.unit.learning.test_model_kind import ONE, charges

from dalenius.curator import Curator
from dalenius.errors import InputError
from dalenius.learning.planned import Planned
from dalenius.learning.reading import held_out, read_units
from dalenius.learning.request import ModelAsk
from dalenius.learning.score_kind import BITS, counted, mechanism_for
from dalenius.learning.scoring import off_by
from dalenius.measuring.measures import change_within
from dalenius.releasing.opened import Opened, tables_of
from dalenius.releasing.snapshot import Snapshot


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    with seeded_noise(3):
        yield


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("people"), some_people(1500))


def test_a_score_is_charged_once_and_lies_within_its_margin_of_the_truth(people: Curator):
    ana = people.analyst("ana")
    model = ana.train("people", "income", epsilon=3.0, held_out=0.3, **ONE)
    before = len(charges(people))
    expected = ana.preview_score(model, epsilon=1.0)
    found = ana.score_model(model, epsilon=1.0)
    (charge,) = charges(people)[before:]
    assert (charge["epsilon"], charge["kind"], charge["delta"]) == (1.0, "score", 0.0)
    assert ana.score_model(model, epsilon=0.5).free and len(charges(people)) == before + 1
    assert ana.preview_score(model, epsilon=1.0).known and not expected.known
    truth = exact_score(people, 0.3)
    assert found.scored.accuracy is not None and expected.margin is not None
    assert abs(found.scored.accuracy - truth) < 2.5 * found.scored.margin and found.scored.margin < 0.05
    assert abs(found.scored.count - 450) < 100
    assert not people.analyst("bob").train("people", "income", epsilon=3.0, held_out=0.3, **ONE).free


def exact_score(people: Curator, share: float) -> float:
    """The accuracy of ana's model on the units held out, without noise."""
    asker = people.analyst("ana")._asker
    opened = Opened.of(asker)
    table = tables_of(asker, opened.versions)["people"]
    planned = Planned.of(table, ModelAsk("people", "income", 3.0, held_out=share, rows_per_unit=1), 900.0)
    model = people.analyst("ana").train("people", "income", epsilon=3.0, held_out=share, **ONE)
    engine = Snapshot.of(table, opened.versions).engine(people.engines)
    total = np.zeros(2, np.int64)
    sides = [0, 0]
    for held in (True, False):
        reading = (table, planned.task, planned.where, engine, asker.salt("people"), 60.0)
        for units in read_units(*reading, rows=1, share=share, held=held):
            sides[held] += len(units)
            if held:
                rows = units.numbers.reshape(-1, planned.task.width)
                off = off_by(model.stored.recipe, model.stored.weights, rows, units.aims.reshape(-1))
                total += counted(off.reshape(-1, 1), units.numbers[:, :, -1] != 0)
    assert sum(sides) == 1500 and abs(sides[1] - 450) < 90  # each unit is on one side
    return float(total[1] / total.sum())


def test_a_model_of_everybody_cannot_be_scored(people: Curator):
    model = people.analyst("ana").train("people", "income", epsilon=1.0, **ONE)
    before = len(charges(people))
    with pytest.raises(InputError, match="held out"):
        people.analyst("ana").score_model(model, epsilon=1.0)
    assert len(charges(people)) == before


def test_one_unit_changes_the_two_numbers_by_no_more_than_the_noise_is_made_for():
    chance = np.random.default_rng(1)
    most = 0.0
    for _ in range(200):
        units, rows = int(chance.integers(1, 6)), int(chance.integers(1, 5))
        off, here = chance.random((units, rows)).round(1), chance.random((units, rows)) < 0.7
        without = counted(np.delete(off, 0, axis=0), np.delete(here, 0, axis=0))
        change = counted(off, here) - without
        assert change.min() >= 0 and change.sum() in {0, 1 << BITS}
        most = max(most, float((change**2).sum()) ** 0.5)
    from dalenius.accounting.neighbors import Neighbors

    assert most**2 <= change_within(1 << BITS, "l2", Neighbors.ADD_REMOVE, non_negative=True)


def test_what_a_unit_adds_does_not_depend_on_who_stands_beside_it(people: Curator):
    model = people.analyst("ana").train("people", "income", epsilon=3.0, held_out=0.3, **ONE)
    recipe, chance = model.stored.recipe, np.random.default_rng(2)
    rows = chance.integers(-(2**14), 2**14, (40, recipe.task.width)).astype(np.float32)
    aims = chance.integers(0, 2, 40).astype(np.float64)
    together = off_by(recipe, model.stored.weights, rows, aims)
    alone = [off_by(recipe, model.stored.weights, rows[[at]], aims[[at]])[0] for at in range(40)]
    assert together.tolist() == alone


def test_who_is_held_out_follows_from_the_own_tag():
    tags = np.random.default_rng(3).integers(0, 2**64, 20_000, dtype=np.uint64)
    held = held_out(tags, 0.2)
    assert abs(held.mean() - 0.2) < 0.02 and (held_out(tags[::7], 0.2) == held[::7]).all()
    assert not held_out(tags, 0.0).any()


@pytest.mark.parametrize(
    ("accounting", "neighbors"), [("zcdp", "add-remove"), ("zcdp", "substitute"), ("pure", "add-remove")]
)
def test_noise_covers_its_price_under_every_budget(tmp_path: Path, accounting: str, neighbors: str):
    curator = curator_of(tmp_path, some_people(20), accounting=accounting, neighbors=neighbors)
    budget = curator.ledger.budget("people")
    mechanism = mechanism_for(budget, 1.0)
    from dalenius.ledger.budgets import covers

    assert mechanism.event.neighbors.value == neighbors
    assert covers(budget.filter().price(1.0), mechanism.event)
    assert not covers(budget.filter().price(0.8), mechanism.event)
