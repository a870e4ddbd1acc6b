"""Groups whose keys are not public: what they weigh, which are released, and what is answered about them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.statements.keys import weights
from dalenius.measuring.plan import Found, Limits, require
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.preview import preview_plan
from dalenius.queries.rules.bound import FEWEST_KEYS, MOST_KEYS, USUAL_KEYS
from dalenius.queries.rules.price import price_plan

SALT = "salt"
moment = datetime.fromisoformat
EPSILON, DELTA = 40.0, 1e-4  # so much that a key of 300 units is never missed, and what 10 have is
TYPES = {
    "age": pa.float64(), "child": pa.float64(), "region": pa.string(), "amount": pa.float64(), "change": pa.float64(),
    "free": pa.float64(), "smoker": pa.bool_(), "when": pa.date32(), "at": pa.timestamp("us"), "note": pa.string(),
    "odd name": pa.float64(),
}  # fmt: skip


def rows(*held, user=None):
    """A table of rows (user, {column: value})."""
    schema = pa.schema([("user_id", user or pa.int64()), *TYPES.items()])
    return pa.Table.from_pylist([{**dict.fromkeys(TYPES), "user_id": who, **values} for who, values in held], schema)


def weighed(plan, engine, salt=SALT):
    return dict(zip(*weights(plan, engine, salt, 60.0), strict=True))


def answered(plan, engine, epsilon=EPSILON, delta=DELTA):
    content = measure_plan(plan, price_plan(plan, epsilon, delta), engine, SALT, 60.0)
    return Answer.read(plan, content, 0.95)


def many(column, values, count=300):
    """Three hundred units for each value."""
    return [(at * count + who, {column: value}) for at, value in enumerate(values) for who in range(count)]


# --- weights


def test_a_unit_weighs_on_each_of_its_keys_and_rows_do_not_matter(visits, memory):
    table = rows(
        (1, {"note": "a"}), (1, {"note": "a"}), (1, {"note": "a"}),
        (2, {"note": "a"}), (2, {"note": "b"}),
        (3, {"note": None}), (None, {"note": "c"}),
    )  # fmt: skip
    plan = visits.plan("SELECT note, COUNT(*) FROM visits GROUP BY note")
    half = KeySelection.weight(2)
    assert weighed(plan, memory(table)) == {("a",): WEIGHT + half, ("b",): half}


def test_a_unit_with_more_keys_than_the_cap_weighs_on_so_many_and_counts_in_the_same(visits, memory):
    plan = visits.plan("SELECT note, COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY note")
    assert require(plan.selection).cap == plan.groups == 2  # [contribution] groups
    for who in range(20):
        engine = memory(rows(*((who, {"note": f"{at}"}) for at in range(9))))
        found = weighed(plan, engine)
        assert list(found.values()) == [KeySelection.weight(2)] * 2
        every = replace(plan, cells=tuple((f"{at}",) for at in range(9)))
        for counted in exact(every, engine, SALT):
            assert {cell for cell, each in zip(every.cells, counted, strict=True) if each} == set(found)
    chosen = {frozenset(weighed(plan, memory(table_of_nine(who)))) for who in range(20)}
    assert len(chosen) > 5  # another choice for each unit, and for each salt
    assert weighed(plan, memory(table_of_nine(3)), "other salt") != weighed(plan, memory(table_of_nine(3)))


def table_of_nine(who):
    return rows(*((who, {"note": f"{at}"}) for at in range(9)))


@pytest.mark.parametrize("types", [{}, {"user_id": "DOUBLE"}])
def test_one_unit_in_two_spellings_is_one_in_any_order(types, visits, memory):
    """0.0 and -0.0: which of them stands for the unit must not decide on its keys."""
    plan = visits.plan("SELECT note, COUNT(*) FROM visits GROUP BY note")
    held = [(0.0 if at % 2 else -0.0, {"note": f"{at % 9}"}) for at in range(36)]
    found = {
        frozenset(weighed(plan, memory(rows(*order, user=pa.float64()), types)).items())
        for order in (held, held[::-1], held[1:] + held[:1], sorted(held, key=lambda row: row[1]["note"]))
    }
    assert len(found) == 1


def test_the_choice_of_keys_is_the_same_whether_seeds_are_carried_or_not(visits, memory):
    plan = visits.plan("SELECT note, COUNT(*) FROM visits GROUP BY note")
    table = rows(*((who, {"note": f"{at}"}) for who in range(30) for at in range(5)))
    carried, late = memory(table), memory(table, {"user_id": "BIGINT"})
    assert weighed(plan, carried) == weighed(plan, late)
    assert "min(seed)" in carried.ran[0] and "min(seed)" not in late.ran[0]


def test_where_decides_which_keys_there_are_and_filter_does_not(visits, memory):
    table = rows(*many("note", ["a", "b"]), *((900 + at, {"note": "c", "age": 30.0}) for at in range(300)))
    everything = visits.plan("SELECT note, COUNT(*) FILTER (WHERE age > 20) FROM visits GROUP BY note ORDER BY 1")
    released = answered(everything, memory(table)).table()
    assert [row[0] for row in released.rows] == ["a", "b", "c"]
    assert abs(released.rows[0][1]) < 100 < released.rows[2][1]  # σ is about 3
    some = visits.plan("SELECT note, COUNT(*) FROM visits WHERE age > 20 GROUP BY note")
    assert weighed(some, memory(table)).keys() == {("c",)}


@pytest.mark.parametrize(
    ("limits", "cap"), [(None, 2), (Limits(groups=1), 1), (Limits(groups=5), 2)], ids=["policy", "lower", "higher"]
)
def test_limits_can_only_lower_the_cap(limits, cap, visits):
    assert require(visits.plan("SELECT COUNT(*) FROM visits GROUP BY note", limits).selection).cap == cap


def test_the_cap_is_declared_or_found_or_usual(asker):
    who = asker(contribution="rows = 10")
    question = "SELECT COUNT(*) FROM visits GROUP BY {}"

    def cap(keys, table=who.table):
        return require(replace(who, table=table).plan(question.format(keys)).selection).cap

    assert cap("note") == USUAL_KEYS
    found = replace(who.table, found=Found(10, distinct={"note": 7}))
    assert cap("note", found) == cap("UPPER(note)", found) == FEWEST_KEYS
    assert cap("note, region", found) == 28  # four regions
    assert cap("note, age", found) == MOST_KEYS
    assert cap("note, free", found) == USUAL_KEYS  # of which nothing is known


# --- what is released


KEYED: dict[str, tuple[str, str, list[Any]]] = {
    "text": ("note", "note", ["", "a|b", "o'clock", "ß", "NULL", "x" * 200]),
    "float": ("free", "free", [-1e300, -0.1, 0.0, 0.1, 1 / 3, 5e-324, 1.5]),
    "whole": ("free", "FLOOR(free)", [-3.0, 0.0, 2.0**60]),
    "date": ("when", '"when" + 400', [date(2025, 1, 1), date(2025, 12, 31)]),
    "datetime": ("at", '"at"', [moment("2025-02-01 00:00:00.000001"), moment("2025-02-28")]),
    "boolean and text": ("note", "note = 'a', note", ["a", "b"]),
}


@pytest.mark.parametrize("kind", KEYED)
def test_keys_come_back_from_what_is_stored_as_they_were(kind, visits, memory):
    column, keys, values = KEYED[kind]
    plan = visits.plan(f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY ALL")
    if kind == "date":  # 365 values would be public, more than 10⁵ are not: here they are made unknown
        columns = dict(visits.table.policy.columns)
        columns["when"] = replace(columns["when"], bounds=None)
        who = replace(visits, table=replace(visits.table, policy=replace(visits.table.policy, columns=columns)))
        plan = who.plan(f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY ALL")
        shown = [each + timedelta(days=400) for each in values]
    else:
        shown = values
    assert plan.selection is not None
    answer = answered(plan, memory(rows(*many(column, values))))
    found = [row[len(plan.keys) - 1] for row in answer.table().rows]
    assert sorted(found) == sorted(shown) and [type(each) for each in found] == [
        int if kind == "whole" else type(each) for each in sorted(shown)
    ]
    assert all(abs(row[-1] - 300) < 100 for row in answer.table().rows)
    if kind == "boolean and text":
        assert {row[:2] for row in answer.table().rows} == {(True, "a"), (False, "b")}


def test_a_day_beyond_the_calendar_is_no_group(visits, memory):
    """No answer could show it; it used to fail once it was released."""
    columns = dict(visits.table.policy.columns)
    columns |= {name: replace(columns[name], bounds=None) for name in ("when", "at")}
    who = replace(visits, table=replace(visits.table, policy=replace(visits.table.policy, columns=columns)))
    days = rows(*many("when", [date(1, 1, 1), date(2020, 1, 1), date(9999, 12, 31)]))
    for key, found in (
        ('"when"', [date(1, 1, 1), date(2020, 1, 1), date(9999, 12, 31)]),
        ('"when" + 1', [date(1, 1, 2), date(2020, 1, 2)]),
        ('"when" - 1', [date(2019, 12, 31), date(9999, 12, 30)]),
    ):
        plan = who.plan(f"SELECT {key}, COUNT(*) FROM visits GROUP BY 1")
        assert [row[0] for row in answered(plan, memory(days)).table().rows] == found
    moments = rows(*many("at", [moment("0001-01-01"), moment("2020-01-01"), moment("9999-12-31")]))
    plan = who.plan('SELECT "at" + INTERVAL 1 DAY, COUNT(*) FROM visits GROUP BY 1')
    assert [row[0] for row in answered(plan, memory(moments)).table().rows] == [
        moment("0001-01-02"),
        moment("2020-01-02"),
    ]


def test_known_and_unknown_keys_together_show_only_what_is_found(visits, memory):
    held = [(at, {"region": "north" if at % 2 else "south", "note": "a"}) for at in range(800)]
    plan = visits.plan("SELECT region, note, COUNT(*) FROM visits GROUP BY region, note")
    table = answered(plan, memory(rows(*held, (900, {"region": "east", "note": "b"})))).table()
    assert [row[:2] for row in table.rows] == [("north", "a"), ("south", "a")]


def test_having_order_and_limit_are_done_with_what_was_found(visits, memory):
    held = [*many("note", ["a", "b", "c"]), *((2000 + at, {"note": "d"}) for at in range(900))]
    engine = memory(rows(*held))
    plan = visits.plan("SELECT note AS k, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM visits GROUP BY note")
    content = measure_plan(plan, price_plan(plan, EPSILON, DELTA), engine, SALT, 60.0)

    def shown(rest):
        other = visits.plan(f"SELECT note, COUNT(*) FROM visits GROUP BY note {rest}")
        assert other.canonical() == plan.canonical()
        return [row[0] for row in Answer.read(other, content, 0.95).table().rows]

    assert shown("") == ["a", "b", "c", "d"]
    assert shown("HAVING COUNT(*) > 600") == ["d"]
    assert shown("HAVING note < 'c'") == ["a", "b"]
    assert shown("ORDER BY COUNT(*) DESC LIMIT 1") == ["d"]
    assert shown("ORDER BY note DESC LIMIT 2 OFFSET 1") == ["c", "b"]
    assert all(row[2] == 2 * row[1] for row in Answer.read(plan, content, 0.95).table().rows)


def test_counting_units_over_unknown_keys_has_the_sensitivity_of_the_cap(asker, memory):
    for neighbors, both in (("add-remove", 1), ("substitute", 2)):
        who = asker(contribution="rows = 10", neighbors=neighbors)
        plan = who.plan("SELECT note, COUNT(DISTINCT user_id) FROM visits GROUP BY note")
        (measure,) = plan.measures
        assert plan.groups == measure.clip == USUAL_KEYS and measure.sensitivity == USUAL_KEYS * both
        table = answered(plan, memory(rows(*many("note", ["a", "b"]))), epsilon=200).table()
        assert [row[0] for row in table.rows] == ["a", "b"] and all(abs(row[1] - 300) < 150 for row in table.rows)


@pytest.mark.parametrize("held", [[], [(1, {"note": "a"})], [(1, {"note": None}), (None, {"note": "b"})]])
@pytest.mark.parametrize(
    "question",
    [
        "SELECT note, COUNT(*), AVG(age), COUNT(*) * 2 FROM visits GROUP BY note HAVING COUNT(*) > 3 ORDER BY 2",
        "SELECT note, region, STDDEV(amount) FROM visits GROUP BY ALL LIMIT 3",
    ],
)
def test_where_no_key_is_found_the_answer_is_an_empty_table(held, question, visits, memory):
    """One unit alone is shown with chance 1e-7."""
    plan = visits.plan(question)
    table = answered(plan, memory(rows(*held)), epsilon=1.0, delta=1e-7).table()
    assert table.rows == () and len(table.columns) == len(plan.question.outputs)


# --- at least so many units


def test_a_policy_and_a_question_can_ask_for_more_units_in_a_group(asker, memory):
    question = "SELECT note, COUNT(*) FROM visits GROUP BY note"
    who = asker(contribution="rows = 10\nunits = 400")
    engine = memory(rows(*many("note", ["a", "b"]), *((2000 + at, {"note": "d"}) for at in range(900))))
    plan = who.plan(question)
    assert require(plan.selection).units == 400
    assert [row[0] for row in answered(plan, engine).table().rows] == ["d"]
    # the larger of both holds, and is part of the question
    assert require(who.plan(question, Limits(units=100)).selection).units == 400
    more = who.plan(question, Limits(units=1000))
    assert require(more.selection).units == 1000 and more.canonical() != plan.canonical()
    assert answered(more, engine).table().rows == ()
    without = asker(contribution="rows = 10").plan(question)
    assert [row[0] for row in answered(without, engine).table().rows] == ["a", "b", "d"]


@pytest.mark.parametrize("units", [-1, 2.5, "3", True])
def test_a_wrong_number_of_units_is_refused(units):
    with pytest.raises(InputError):
        Limits(units=units)


# --- price


def test_half_of_the_price_finds_the_keys(visits):
    plan = visits.plan("SELECT note, COUNT(*), SUM(amount) FROM visits GROUP BY note")
    found = price_plan(plan, 1.0)
    selection = require(found.selection)
    assert selection.rho == Fraction(require(found.rho)) / 2
    assert sum(each.share for each in plan.measures) == Fraction(1, 2)
    assert found.delta == selection.delta == pytest.approx(1e-6 / 40)
    assert price_plan(plan, 1.0, 3e-7).delta == 3e-7
    from dalenius.accounting import costs

    cost = require(costs.zcdp(found.event))
    assert cost.rho == pytest.approx(found.rho, rel=1e-6) and cost.delta == found.delta


def test_keys_that_are_public_cost_no_delta(visits):
    assert price_plan(visits.plan("SELECT region, COUNT(*) FROM visits GROUP BY region"), 1.0, 1e-7).delta == 0


def test_exchanged_units_need_twice_the_variance(asker):
    plans = [
        asker(neighbors=each).plan("SELECT note, COUNT(*) FROM visits GROUP BY note")
        for each in ("add-remove", "substitute")
    ]
    one, other = (require(price_plan(plan, 1.0).selection) for plan in plans)
    assert other.neighbors is Neighbors.SUBSTITUTE
    assert float(other.noise.variance / one.noise.variance) == pytest.approx(2)


def test_each_period_has_its_own_units(asker, memory):
    who = asker(period='period = { column = "when", every = "month" }')
    plan = who.plan("SELECT note, COUNT(*) FROM visits WHERE \"when\" < DATE '2025-03-01' GROUP BY note")
    assert plan.periods == ("2025-01", "2025-02")
    months = [date(2025, month, 1) for month in (1, 2)]
    engine = memory(rows(*((1, {"note": note, "when": month}) for month in months for note in ("a", "b"))))
    # one person in two months is two units, each with two keys
    assert weighed(plan, engine) == {("a",): 2 * KeySelection.weight(2), ("b",): 2 * KeySelection.weight(2)}
    without = memory(rows((1, {"note": "a", "when": None})))
    assert weighed(plan, without) == {}


def test_a_limit_that_entries_could_not_reach_is_refused_not_lowered(asker):
    question = "SELECT note, SUM(LEAST(GREATEST(free, 0), 1e12)) FROM visits GROUP BY note"
    fine = asker(contribution="rows = 10").plan(question)
    assert max(each.clip for each in fine.measures) < math.isqrt(2**126 // 2**31)
    who = asker(contribution="rows = 1000000000")
    error = who.error(question)
    assert isinstance(error, QuestionRefusedError) and "steps" in error.why
    assert who.plan(question.replace("GROUP BY note", "").replace("note, ", "")).measures  # one number has room
    # squares are rounded coarser instead
    squares = asker(contribution="rows = 1000").plan("SELECT note, VAR_POP(amount) FROM visits GROUP BY note")
    assert max(each.clip for each in squares.measures) < math.isqrt(2**126 // 2**31)


# --- preview


def test_a_preview_says_that_groups_are_found(visits):
    plan = visits.plan("SELECT note, COUNT(*) AS n, AVG(amount) AS a FROM visits GROUP BY note")
    remaining = {"analyst": {"epsilon": 1.0, "delta": 1e-7}}
    found = preview_plan(plan, (0.5, 1.0), 0.95, remaining, 2e-7)
    assert found.groups is None and found.delta == 2e-7
    data = found.to_dict()
    assert data["groups"] is None and data["delta"] == 2e-7 and json.dumps(data)
    assert str(found).startswith("groups found privately, δ = 2e-07, note, n, a")
    assert "ε = 1: n ±" in str(found) and "a ±" in str(found)
    for words in ("note (found privately)", "at most 2 by a keyed hash", "δ = 2e-07", "keys whose noisy weight"):
        assert words in found.plan
    least = price_plan(plan, 0.5, 2e-7).least_units
    assert f"that of {least:,} with this key alone" in found.plan


def test_a_preview_reckons_with_the_rows_that_were_found(visits):
    errors = []
    for count in (100_000, 1000):
        who = replace(visits, table=replace(visits.table, found=Found(10, row_count=count)))
        plan = who.plan("SELECT note, AVG(amount) FROM visits GROUP BY note")
        errors.append(require(preview_plan(plan, (1.0,), 0.95, {}).choices[0].noise_error[1]))
    assert errors[0] < errors[1]
