"""Several quantiles in one cell: read from one tree, at one price, and shown as a list everywhere."""

from __future__ import annotations

import csv
import json

import pyarrow.parquet as pq
import pytest
from tests import typed
from tests.shop import Shop

from dalenius.errors import DaleniusError
from dalenius.queries.release import Release

QUARTILES = "SELECT sex, quantile_cont(age, [0.25, 0.5, 0.75]) AS q FROM people GROUP BY sex"
EPSILON = 1e16


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("lists"))


@pytest.fixture(scope="module")
def answer(shop: Shop) -> Release:
    return shop.ana.ask(QUARTILES, epsilon=EPSILON)


def test_a_list_holds_what_its_quantiles_are_one_by_one_and_they_are_free(shop, answer):
    apart = shop.ana.ask(
        "SELECT sex, QUANTILE_CONT(age, 0.25), MEDIAN(age), QUANTILE_CONT(age, 0.75) FROM people GROUP BY sex",
        epsilon=EPSILON,
    )
    assert apart.free
    assert [row[1] for row in answer.rows] == [list(row[1:]) for row in apart.rows]
    assert [row[1] for row in answer.noise_error] == [list(row[1:]) for row in apart.noise_error]
    assert [row[1] for row in answer.interval] == [list(row[1:]) for row in apart.interval]


def test_a_list_costs_what_one_quantile_costs(shop):
    one, many = (
        shop.plan(f"SELECT {each} FROM people") for each in ("MEDIAN(age)", "quantile_cont(age, [0.1, 0.5, 0.9])")
    )
    assert one.canonical() == many.canonical()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY age)", "quantile_cont(age, [0.25, 0.5])"),
        ("percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY age DESC)", "quantile_cont(age, [0.75, 0.5])"),
        ("APPROX_QUANTILE(age, [0.5])", "quantile_disc(age, [0.5])"),
        ("APPROX_PERCENTILE(age, [0.5, 0.5])", "quantile(age, list_value(0.5, 0.5))"),
    ],
)
def test_lists_are_the_same_in_other_words(shop, one, other):
    found = [shop.plan(f"SELECT {each} AS q FROM people").question.outputs for each in (one, other)]
    assert found[0] == found[1]


def test_approx_quantiles_has_both_ends(shop):
    (row,) = shop.ana.ask("SELECT APPROX_QUANTILES(age, 4) AS q FROM people", epsilon=EPSILON).rows
    (apart,) = shop.ana.ask(
        "SELECT MIN(age), QUANTILE_CONT(age, 0.25), MEDIAN(age), QUANTILE_CONT(age, 0.75), MAX(age) FROM people",
        epsilon=EPSILON,
    ).rows
    assert row[0] == list(apart)


def test_a_list_comes_back_from_json_and_prints_the_same(answer):
    data = json.loads(json.dumps(answer.to_dict()))
    back = Release.from_dict(data, answer.question)
    assert (back.rows, back.noise_error, back.interval) == (answer.rows, answer.noise_error, answer.interval)
    assert str(back) == str(answer)
    assert answer._repr_html_() == back._repr_html_()
    assert answer.ends(0, 1) is None
    assert "[" in str(answer).splitlines()[2]


def test_a_list_in_files_and_frames(answer, tmp_path):
    values = [row[1] for row in answer.rows]
    assert answer.to_arrow().column("q").to_pylist() == values
    assert answer.to_arrow().column("q_noise_error").to_pylist() == [row[1] for row in answer.noise_error]
    answer.write(tmp_path / "q.parquet")
    assert pq.read_table(tmp_path / "q.parquet").column("q").to_pylist() == values
    answer.write(tmp_path / "q.csv")
    with (tmp_path / "q.csv").open() as file:
        assert [json.loads(row["q"]) for row in csv.DictReader(file)] == values


def test_a_preview_tells_the_largest_error_of_a_list(shop):
    apart = shop.ana.preview(
        "SELECT QUANTILE_CONT(amount, 0.1), QUANTILE_CONT(amount, 0.5), QUANTILE_CONT(amount, 0.8) FROM orders",
        epsilon=1.0,
    )
    together = shop.ana.preview("SELECT QUANTILE_CONT(amount, [0.1, 0.5, 0.8]) FROM orders", epsilon=1.0)
    assert together.choices[0].noise_error == (max(apart.choices[0].noise_error),)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT quantile_cont(age, [0.5]) AS q FROM people ORDER BY q",
        "SELECT quantile_cont(age, [0.5]) AS q FROM people ORDER BY ALL",
        "SELECT quantile_cont(age, [0.5]) IS NULL FROM people",
        "SELECT COALESCE(quantile_cont(age, [0.5]), quantile_cont(age, [0.1])) FROM people",
        "SELECT sex FROM people GROUP BY sex HAVING quantile_cont(age, [0.5]) = quantile_cont(age, [0.5])",
        "SELECT CASE WHEN COUNT(*) > 1 THEN quantile_cont(age, [0.5]) END FROM people",
        "SELECT quantile_cont(age, []) FROM people",
        f"SELECT quantile_cont(age, [{', '.join(['0.5'] * 102)}]) FROM people",
        "SELECT quantile_cont(age, [0.5, 2]) FROM people",
        "SELECT quantile_cont(age, [[0.5]]) FROM people",
        "SELECT quantile_cont(age, [age]) FROM people",
        "SELECT APPROX_QUANTILES(age, 0) FROM people",
        "SELECT [1, 2] FROM people",
        "SELECT [COUNT(*)] FROM people",
        "SELECT COUNT(*) FROM people WHERE [age] = [5]",
        "SELECT COUNT(x) FROM (SELECT person_id, APPROX_QUANTILES(amount, 1) AS x FROM orders GROUP BY person_id)",
        "SELECT q FROM (SELECT quantile_cont(age, [0.5]) AS q FROM people)",
        "SELECT COUNT(*) FROM people GROUP BY quantile_cont(age, [0.5])",
        "SELECT SUM(quantile_cont(age, [0.5])) FROM people",
    ],
)
def test_nothing_is_done_with_a_list(shop, question):
    with pytest.raises(DaleniusError) as error:
        shop.ana.preview(question, epsilon=1.0)
    assert error.value.fix
