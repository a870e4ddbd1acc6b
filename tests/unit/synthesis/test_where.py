"""Rows for a condition: as the model has them given that, from every kind of model; for nothing."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.serving import serving
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius import connect
from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError, UnknownColumnError
from dalenius.synthesis import conditional
from dalenius.synthesis.allowed import allowed, drawn_places, fraction
from dalenius.synthesis.conditioned import conditioned
from dalenius.synthesis.drawing import Drawing
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.meaning import Meaning
from dalenius.synthesis.modelled import Modelled
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.sampling import Step
from dalenius.synthesis.stored import StoredModel
from dalenius.tables.conditions import Absent, Among, Compare
from dalenius.tables.policy import Bounds, Column, Kind

METHODS = ("histogram", "tree", "mst", "marginals", "privbayes", "adaptive")
WHERE = (
    "age >= 60 AND sex = 'f'",
    "age >= 80 OR \"région\" = 'nörd' OR sex IS NULL",
    "NOT (bmi < 40) AND smoker",
    "day BETWEEN '2025-03-05' AND '2025-05-20' AND at < '2025-01-01T10:30:00'",
    "wave IN (1, 3) AND age NOT BETWEEN 20 AND 70",
)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    with seeded_noise(4):
        yield curator_of(tmp_path_factory.mktemp("where"), some_rows(1500))


@pytest.fixture(scope="module")
def models(people: Curator) -> dict[str, StoredModel]:
    with seeded_noise(5):
        return {each: people.analyst("ana").synthesize("people", epsilon=20.0, method=each).stored for each in METHODS}


def joint(steps: list[Step], sizes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The probability of every row, by multiplying out."""
    found = np.zeros(sizes)
    for row in itertools.product(*map(range, sizes)):
        chance = 1.0
        for step in steps:
            table = step.table if not step.parents else step.table[tuple(row[at] for at in step.parents)]
            chance *= table[row[step.column]] / table.sum()
        found[row] = chance
    return found


def test_a_tree_is_conditioned_exactly():
    rng, sizes = np.random.default_rng(1), (3, 4, 2, 3)
    tables = [rng.random((3,)), rng.random((3, 4)), rng.random((4, 2)), rng.random((3,))]
    parents = [(), (0,), (1,), ()]
    steps = [Step(at, parents[at], tables[at]) for at in range(4)]
    evidence = [None, np.array([0.0, 1, 0.5, 0]), np.array([0.2, 1]), np.array([1.0, 0, 3])]
    model, mass = conditioned(TreeModel(100.0, steps), evidence)
    counts = np.ones(sizes)
    for at, each in enumerate(evidence):
        if each is not None:
            counts = counts * each.reshape([-1 if place == at else 1 for place in range(4)])
    whole = joint(steps, sizes) * counts
    assert mass == pytest.approx(whole.sum())
    assert np.allclose(joint(list(model.steps), sizes), whole / whole.sum())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "where"),
    [pair for pair in itertools.product(METHODS, WHERE) if pair[0] != "privbayes" or pair[1] in WHERE[:2]],
)
def test_rows_are_those_that_a_large_table_has_of_them(models: dict[str, StoredModel], method: str, where: str):
    """Pairs of columns, to within what drawing scatters: four times its mean for so many rows and cells."""
    stored, rng = models[method], np.random.default_rng(3)
    drawing = Drawing(stored, None, where)
    drawn = drawing._given.rows(12_000, rng)
    assert len(drawn) == 12_000 and drawing._given.meaning.holds(drawn).all()
    every = Drawing(stored)._plain(150_000, rng)
    held = every.at(Meaning(stored.domain, drawing.condition).holds(every))
    assert len(held) / len(every) == pytest.approx(drawing.chance, rel=0.2, abs=0.002)
    for pair in itertools.combinations(("sex", "région", "wave", "smoker"), 2):
        one, other = (_table(each.codes, stored, pair) for each in (drawn, held))
        scatter = (len(one) * (1 / len(drawn) + 1 / len(held))) ** 0.5
        assert float(abs(one - other).sum()) < 4 * scatter, pair


def _table(codes: Any, stored: StoredModel, pair: tuple[str, ...]) -> Any:
    one, other = (stored.domain.place(name) for name in pair)
    size = stored.domain.columns[other].column.size
    found = np.bincount(codes[:, one] * size + codes[:, other], minlength=stored.domain.columns[one].column.size * size)
    return found / found.sum()


def test_a_row_of_two_alternatives_that_is_counted_twice_would_be_caught(
    models: dict[str, StoredModel], monkeypatch: pytest.MonkeyPatch
):
    def kept(self: conditional.Conditional, rows: Any, rng: Any) -> Any:
        return self.meaning.holds(rows)

    monkeypatch.setattr(conditional.Conditional, "_kept", kept)
    with pytest.raises(AssertionError):
        test_rows_are_those_that_a_large_table_has_of_them(models, "tree", "age >= 50 OR \"région\" = 'süd'")


def test_values_are_drawn_within_their_class_and_nowhere_else():
    column = Modelled.of(Column("x", Kind.NUMBER, Bounds(0, 100), Fraction(1, 10)))
    column = column.with_classes(Classes(((0, 9), (10, 109), (500, 1000))))
    among = allowed(column, Compare("x", ">=", 10)).within(allowed(column, Compare("x", "<", 60)))
    assert among.runs.tolist() == [[100, 599]]
    assert fraction(column, among).tolist() == [0.0, 0.1, 100 / 501, 0.0]
    places = drawn_places(column, np.array([1] * 500 + [2] * 500), among, np.random.default_rng(1))
    assert set(places[:500]) == set(range(100, 110)) and 500 <= places[500:].min() <= places[500:].max() <= 599
    assert allowed(column, Among("x", (10, 20), False)).runs.tolist() == [[0, 99], [101, 199], [201, 1000]]
    assert allowed(column, Absent("x")).absent and not allowed(column, Absent("x", False)).absent


def test_how_many_rows_there_are_is_what_the_model_says(people: Curator):
    table = people.analyst("ana").synthesize("people", epsilon=20.0, method="tree")
    where = "age >= 60 AND sex = 'f'"
    expected = table.rows_where(where)
    assert table.to_arrow(where=where, seed=1).num_rows == expected
    every = table.to_arrow(60_000, seed=2).to_pylist()
    share = sum(each["age"] >= 60 and each["sex"] == "f" for each in every) / len(every)
    assert expected == pytest.approx(share * table.rows, rel=0.15)
    rows = table.to_arrow(5000, where=where, seed=1)
    assert rows.num_rows == 5000 and rows.equals(table.to_arrow(5000, where=where, seed=1))
    assert all(each["age"] >= 60 and each["sex"] == "f" for each in rows.to_pylist())
    assert table.to_arrow(0, where=where).num_rows == 0
    with pytest.raises(InputError, match="expected"):
        table.to_arrow(where="age = 75 AND sex = 'f' AND bmi = 12.3 AND day = '2025-03-04'")


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("age > 60 AND age < 20", "No row can be so"),
        ("age > 200", "No row can be so"),
        ("sex = 'x'", "No row can be so"),
        ("age IS NULL", "No row can be so"),
        ("note = 'abc'", "note"),
        ("age >", "too early"),
        ("bmi = 12.3 AND age = 99 AND day = '2025-03-04' AND at = '2025-01-01T10:00:00'", "hardly any"),
    ],
)
def test_what_the_model_has_no_rows_for_is_refused_and_costs_nothing(people: Curator, where: str, error: str):
    table = people.analyst("ana").synthesize("people", epsilon=20.0, method="tree")
    before = len(list(people.ledger.records(("charge",))))
    with pytest.raises(DaleniusError, match=error) as refused:
        table.to_arrow(10, where=where)
    assert isinstance(refused.value, InputError | UnknownColumnError) and refused.value.charge.epsilon == 0
    assert len(list(people.ledger.records(("charge",)))) == before


def test_units_have_as_many_of_the_rows_as_they_would_have(people: Curator):
    """Of two rows a person about half are of one wave or the other; sizes are those of a table that was filtered."""
    table = people.analyst("ana").synthesize("people", epsilon=50.0, method="tree")
    every = table.to_arrow(8000, seed=3).to_pylist()
    filtered = Counter(Counter(each["person"] for each in every if each["wave"] in {1, 2}).values())
    drawn = table.to_arrow(sum(each["wave"] in {1, 2} for each in every), seed=4, where="wave IN (1, 2)").to_pylist()
    sizes = Counter(Counter(each["person"] for each in drawn).values())
    assert sizes.keys() <= {1, 2, 3}
    for size in (1, 2):
        assert sizes[size] == pytest.approx(filtered[size], rel=0.1, abs=60)


def test_a_server_gives_such_rows_and_the_model_that_draws_them(tmp_path: Path):
    curator_of(tmp_path, some_rows(60))
    where = "age < 50 AND sex IS NOT NULL"
    with serving(tmp_path / "home") as server:
        remote = connect(server.url, server.token("analyst", "ana", trusted=True))
        made = remote.synthesize("people", epsilon=5.0, method="tree", columns=["sex", "age"])
        rows = made.to_arrow(50, seed=1, where=where)
        assert all(each["age"] < 50 and each["sex"] for each in rows.to_pylist())
        id_ = made.receipt["id"]  # type: ignore[index]
        with closing(server.analyst("ana", trusted=True)) as client:
            path = f"/v1/synthetic/{id_}/rows?seed=1&where=age+%3C+50+AND+sex+IS+NOT+NULL"
            found = client.get(f"{path}&rows=50&format=parquet")
            assert found.status == 200 and pq.read_table(BytesIO(found.content)).equals(rows)
            as_text = client.get(path)
            assert pc.read_csv(BytesIO(as_text.content)).num_rows == made.rows_where(where)
            assert client.get(f"/v1/synthetic/{id_}/rows?where=agee+%3C+50").status == 404
            assert client.get(f"/v1/synthetic/{id_}/rows?rows=300000").status == 400
        with closing(server.analyst("bob", trusted=True)) as other:
            assert other.get(f"/v1/synthetic/{id_}/rows").status == 404


def test_rows_are_tried_a_few_values_at_a_time():
    """Whoever has a model may ask a server for rows as often as they like: wide tables take no more memory for it."""
    column = Column("c", Kind.INTEGER, Bounds(0, 9), default=0)
    domain = PolicyDomain(tuple(Modelled.of(replace(column, name=f"c{at}")) for at in range(60)))
    steps = [Step(at, (), np.ones(10)) for at in range(60)]
    where = " AND ".join(f"c{at} < c{at + 1}" for at in range(8))  # one row in a hundred million is so
    stored = StoredModel("t", "histogram", 1.0, 1.0, 1, domain, TreeModel(1000.0, steps))
    tracemalloc.start()
    with pytest.raises(InputError, match="hardly any"):
        Drawing(stored, None, where).rows(10, np.random.default_rng(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250_000_000
