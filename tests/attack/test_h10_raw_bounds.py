"""H10: bounds are declared, never read off the data. Without them a sum is refused, and an outlier shows nowhere."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.attack.curators import curator_of, outcome
from tests.attack.hostile import weighs_too_much, weights_of

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import NOTHING, DaleniusError, NotAllowedError, QuestionRefusedError
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask

COLUMNS = """
[columns.raw]
type = "number"
[columns.age]
type = "integer"
[columns.bounded]
type = "number"
bounds = [0, 100]
[columns.g]
type = "category"
keys = ["a", "b"]
"""
NEED_BOUNDS = [
    f"SELECT {aggregate} FROM t"
    for aggregate in (
        *("SUM(raw)", "AVG(raw)", "VAR_POP(raw)", "VAR_SAMP(raw)", "STDDEV(raw)", "STDDEV_POP(raw)"),
        *("SUM(age)", "AVG(age)", "SUM(raw * 0.5)", "SUM(bounded + raw)", "SUM(bounded / raw)", "AVG(EXP(raw))"),
        *("SUM(CASE WHEN g = 'a' THEN raw END)", "SUM(LEAST(raw, 100))", "SUM(GREATEST(0, age))"),
        *("CORR(raw, bounded)", "COVAR_POP(bounded, raw)", "COVAR_SAMP(bounded, age)"),
        *("SUM(ABS(raw))", "SUM(LENGTH(g) * raw)", "COUNT(*), SUM(raw)", "AVG(raw) FILTER (WHERE raw < 10)"),
    )
] + ["SELECT g, SUM(raw) FROM t GROUP BY g", "SELECT COUNT(*) FROM t HAVING SUM(raw) > 0"]
KEYS_NEEDED = ["SELECT age, COUNT(*) FROM t GROUP BY age", "SELECT FLOOR(raw), COUNT(*) FROM t GROUP BY 1"]
FINE = [
    "SELECT COUNT(*), COUNT(raw), COUNT(DISTINCT id) FROM t",
    "SELECT COUNT(*) FROM t WHERE raw > 10 AND age < 1e12",
    "SELECT g, COUNT_IF(raw > 1e100) FROM t GROUP BY g",
    "SELECT SUM(LEAST(GREATEST(raw, 0), 100)), AVG(LEAST(GREATEST(age, 0), 120)) FROM t",
    "SELECT SUM(bounded), VAR_POP(bounded) FROM t",
    "SELECT COUNT(DISTINCT raw), COUNT(DISTINCT age), CORR(bounded, LEAST(GREATEST(raw, 0), 100)) FROM t",
    "SELECT WIDTH_BUCKET(raw, 0, 10, 5) AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT raw > 10 AS k, AVG(bounded) FROM t GROUP BY k",
]
SHARED = [*NEED_BOUNDS, *FINE]


def people(outlier: float | None) -> pa.Table:
    """Twenty people, of whom one is as the others or far out."""
    values = [float(at) for at in range(20)]
    if outlier is not None:
        values[7] = outlier
    ages = [int(max(-(2**62), min(2**62, each))) for each in values]
    return pa.table({"id": list(range(20)), "raw": values, "age": ages, "bounded": values, "g": ["a", "b"] * 10})


@pytest.fixture(scope="module")
def curators(tmp_path_factory):
    """Without an outlier and with three kinds of them."""
    return _curators(tmp_path_factory.mktemp("h10"))


@pytest.fixture(scope="module")
def unasked(tmp_path_factory):
    """The same, of whom nobody asks anything: previews use one's own answers, and these are noisy."""
    return _curators(tmp_path_factory.mktemp("h10-unasked"))


def _curators(folder):
    return [
        curator_of(folder / str(at), people(outlier), COLUMNS)
        for at, outlier in enumerate([None, 1e300, -1e300, 5e-324])
    ]


@pytest.mark.parametrize("question", NEED_BOUNDS)
def test_without_bounds_a_sum_is_refused_before_anything_is_charged_or_read(curators, monkeypatch, question):
    looks: list[str] = []
    monkeypatch.setattr(DuckDB, "run", lambda *arguments, **_: looks.append(arguments[1]))
    before = curators[0].ledger.balance("t", "eve")
    with pytest.raises(NotAllowedError) as caught:
        curators[0].analyst("eve").ask(question, epsilon=0.1)
    assert caught.value.charge == NOTHING and "No budget was spent." in str(caught.value)
    assert looks == [] and curators[0].ledger.balance("t", "eve") == before


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return curator_of(tmp_path_factory.mktemp("h10-pure"), people(1e300), COLUMNS, accounting="pure")


@pytest.mark.parametrize("question", KEYS_NEEDED)
def test_without_bounds_keys_are_refused_where_they_cannot_be_found(pure, monkeypatch, question):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    before = pure.ledger.balance("t", "eve")
    with pytest.raises(QuestionRefusedError, match="not public") as caught:
        pure.analyst("eve").ask(question, epsilon=0.1)
    assert caught.value.charge == NOTHING and pure.ledger.balance("t", "eve") == before


@pytest.mark.parametrize("question", KEYS_NEEDED)
def test_an_outlier_that_is_a_key_weighs_as_one_unit_and_says_nothing_before_it_is_paid_for(curators, question):
    weights = [weights_of(each, question) for each in curators]
    plan = plan_ask(curators[0].analyst("eve")._asker, Ask(question)).plan
    assert len({public(each, question) for each in curators}) == 1
    for other in weights[1:]:
        # One unit's value is another's here: it left one key, and has come to another.
        swapped = replace(plan, question=replace(plan.question, table=_swapping(plan.table)))
        assert weighs_too_much(swapped, weights[0], other) == []
    assert any(weights[0] != other for other in weights[1:])


def _swapping(table):
    return replace(table, budget=replace(table.budget, neighbors=Neighbors.SUBSTITUTE))


@pytest.mark.parametrize("question", FINE)
def test_counts_filters_and_sums_with_bounds_of_their_own_are_answered(curators, question):
    releases = [each.analyst("bob").ask(question, epsilon=0.1) for each in curators]
    assert [release.charge["epsilon"] for release in releases] == [0.1] * len(curators)


@pytest.mark.parametrize("question", SHARED)
def test_an_outlier_changes_no_outcome_of_a_question(curators, question):
    assert len({outcome(each, question) for each in curators}) == 1


def public(curator, question):
    """All that is said of a question before it is paid for."""
    eve = curator.analyst("eve")
    try:
        preview = eve.preview(question)
        return preview.plan, str(preview), repr(preview.to_dict()), repr(eve.preview(question, epsilon=0.3).choices)
    except DaleniusError as error:
        return str(error), repr(error.to_dict())


@pytest.mark.parametrize("question", SHARED)
def test_an_outlier_changes_no_plan_preview_or_refusal(unasked, question):
    assert len({public(each, question) for each in unasked}) == 1


def test_an_outlier_changes_no_listing_schema_or_policy(curators):
    def listed(curator):
        (version,) = curator.tables()
        (folder,) = {path.parent for path in version.fingerprint.paths}
        schema = curator.engines.of(version.fingerprint).columns
        shown = version.policy.text.replace(str(folder), ""), version.table, version.dataset, version.data_version
        return shown, dict(schema), version.policy.meaning

    assert all(listed(each) == listed(curators[0]) for each in curators)
    assert "1e+300" not in repr(listed(curators[1]))


def test_the_noise_does_not_follow_the_outlier(curators, unasked):
    """Same question, same price: the same law of noise, though the raw range is 10³⁰⁰ times larger."""
    for question in FINE[:-1]:
        errors = {repr(each.analyst("eve").preview(question, epsilon=0.2).choices) for each in unasked}
        assert len(errors) == 1
    counts = [each.analyst("eve").ask("SELECT SUM(bounded) FROM t", epsilon=0.2) for each in curators]
    assert len({release.noise_error for release in counts}) == 1


def test_bounds_that_follow_the_data_would_be_noticed(tmp_path):
    """A policy whose bounds were drafted from the rows: its plan tells the outlier."""
    plans = []
    for at, outlier in enumerate([None, 1e6]):
        table = people(outlier)
        high = max(table.column("raw").to_pylist())
        columns = COLUMNS.replace("[columns.raw]", f"[columns.raw]\nbounds = [0, {high}]")
        plans.append(public(curator_of(tmp_path / str(at), table, columns), "SELECT SUM(raw) FROM t"))
    assert plans[0] != plans[1]
