"""BigQuery's differential privacy clause: it is read, points at mistakes, and means what the docs say."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid
from tests.whole import exact_steps

from dalenius import Curator
from dalenius.errors import (
    BudgetError,
    DaleniusError,
    InputError,
    NotAllowedError,
    Place,
    QuestionRefusedError,
    SqlSyntaxError,
)
from dalenius.measuring.plan import Found, Limits
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.clause import Options, cut_clause
from dalenius.queries.rules.parse import LONGEST

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


def said(text: str) -> Options:
    return cut_clause(text)[1]


# --- the documented examples

# The shapes of BigQuery's pages on the clause and on its aggregates, for a table of many professors. Where they
# remove the noise (epsilon = 1e20) there is no budget for it here; where they name a view, its table stands.
SHAPES = [
    (
        "SELECT\n  WITH DIFFERENTIAL_PRIVACY\n    OPTIONS({options})\n    item,\n    {aggregate} AS found\n"
        "FROM professors\nGROUP BY item;"
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY\n  OPTIONS (\n    {options}\n  )\n  item,\n  {aggregate} found\n"
        "FROM professors\nGROUP BY item"
    ),
    (
        "-- With noise, using the epsilon parameter.\nSELECT\n  WITH DIFFERENTIAL_PRIVACY\n    OPTIONS({options})\n"
        "    item, {aggregate} found\nFROM professors -- for each\nGROUP BY item;\n\n-- These results will change.\n"
        "/*---+---+\n | a | b |\n +---+---*/"
    ),
]
OPTIONS = [
    "epsilon=10, delta=.01, max_groups_contributed=2",
    "epsilon=10, delta=.01, max_groups_contributed=2, privacy_unit_column=id",
    "epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=professors.id",
    "epsilon = 10,\n    delta = .01,\n    privacy_unit_column=id",
    "epsilon=10, delta=.01, max_groups_contributed=1, group_selection_strategy=LAPLACE_THRESHOLD",
    "epsilon=10, delta=.01, max_rows_contributed=2, min_privacy_units_per_group=5",
]
AGGREGATES = [
    "AVG(quantity)",
    "AVG(quantity, contribution_bounds_per_group => (0,100))",
    "AVG(quantity, contribution_bounds_per_group=>(50, 100))",
    "COUNT(*, contribution_bounds_per_group=>(0, 100))",
    "COUNT(item, contribution_bounds_per_group => (0,100))",
    "PERCENTILE_CONT(quantity, 0.5, contribution_bounds_per_row => (0,100))",
    "SUM(quantity)",
    "SUM(quantity, contribution_bounds_per_group=>(0, 100))",
    "VAR_POP(quantity, contribution_bounds_per_row => (0,100))",
]
PROFESSORS = """
[table]
name = "professors"
source = "professors.parquet"
unit = "id"
[budget]
epsilon = 1000.0
delta = 0.9
[analysts.ana]
epsilon = 1000.0
[columns.item]
type = "category"
[columns.quantity]
type = "integer"
bounds = [0, 200]
[contribution]
rows = 4
groups = 3
"""


@pytest.fixture(scope="module")
def professors(tmp_path_factory):
    """300 professors, each with two rows of pencils and pens; few have scissors."""
    folder = tmp_path_factory.mktemp("professors")
    rows = [(who, item, 10 + who % 5) for who in range(300) for item in ("pencil", "pen")]
    rows += [(who, "scissors", 8) for who in range(2)]
    ids, items, quantities = zip(*rows, strict=True)
    pq.write_table(pa.table({"id": ids, "item": items, "quantity": quantities}), folder / "professors.parquet")
    (folder / "professors.toml").write_text(PROFESSORS)
    curator = Curator(folder / "home")
    curator.protect(folder / "professors.toml")
    return curator.analyst("ana")


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("options", OPTIONS)
def test_the_documented_shapes_are_read(shape, options, professors):
    for aggregate in AGGREGATES:
        found = professors.preview(SHAPES[shape].format(options=options, aggregate=aggregate))
        assert [each.epsilon for each in found.choices] == [10]
        assert found.columns == ("item", "found")


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_documented_aggregates_are_answered(aggregate, professors):
    release = professors.ask(SHAPES[0].format(options=OPTIONS[1], aggregate=aggregate))
    found = {row[0]: (row[1], error[1]) for row, error in zip(release.rows, release.noise_error, strict=True)}
    # At ε = 10 the noise on a key's weight is that of about one unit; 300 units stand 200 σ above what is asked for.
    assert {"pencil", "pen"} <= set(found)
    truth = {"AVG": 12, "COU": 300, "PER": 12, "SUM": 3600, "VAR": 2}[aggregate[:3]]
    truth = 50 if "(50" in aggregate else truth
    for item in ("pencil", "pen"):
        value, error = found[item]
        # Twice 7.8 σ: two professors have scissors too, and may be left out here.
        assert value is None or abs(value - truth) <= 8 * (error or math.inf)
    if aggregate == AGGREGATES[7]:  # pencils and pens of one professor lie within 100 together
        assert "100 over all groups together" in " ".join(release.notes)
    assert release.charge["epsilon"] == 10 and release.charge["delta"] == 0.01


@pytest.mark.parametrize("epsilon", ["1e20", "100000"])
def test_noise_cannot_be_removed(epsilon, professors):
    with pytest.raises(BudgetError):
        professors.ask(f"{WITH}(epsilon={epsilon}, delta=.01) item, AVG(quantity) FROM professors GROUP BY item")


def test_public_groups_are_the_owners_to_declare(professors, visits):
    with pytest.raises(QuestionRefusedError, match="not public") as caught:
        professors.preview(
            f"{WITH}(epsilon=1,\n group_selection_strategy=PUBLIC_GROUPS) item, COUNT(*) FROM professors GROUP BY item"
        )
    assert caught.value.at == Place(2, 2)
    visits.plan(f"{WITH}(group_selection_strategy = public_groups) region, COUNT(*) FROM visits GROUP BY region")


# --- what each option means

BY_REGION = "region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ("max_groups_contributed=1", Limits(groups=1)),
        ("max_rows_contributed=3", Limits(rows=3)),
        ("min_privacy_units_per_group=7", Limits(units=7)),
        ("epsilon=1, delta=1e-7, privacy_unit_column=user_id", None),
        ("max_groups_contributed=9, max_rows_contributed=99", None),  # looser than the policy: nothing
        ("max_groups_contributed=NULL", None),
        ("max_groups_contributed=1, max_rows_contributed=3", Limits(rows=3, groups=1)),
        ("", None),
    ],
)
@pytest.mark.parametrize(
    "question",
    [
        BY_REGION,
        "note, SUM(amount), AVG(age) FROM visits GROUP BY note",
        "COUNT(DISTINCT user_id), MEDIAN(age) FROM visits WHERE smoker",
    ],
)
def test_options_are_the_limits_that_could_be_typed(options, limits, question, visits):
    with_clause = visits.plan(f"{WITH}({options}) {question}")
    assert with_clause.canonical() == visits.plan(f"SELECT {question}", limits).canonical()
    assert with_clause.key(1) == visits.plan(f"SELECT {question}", limits).key(1)


def test_of_two_limits_the_tighter_one_holds(visits):
    asked = f"{WITH}(max_groups_contributed=1, max_rows_contributed=5, min_privacy_units_per_group=3) note, COUNT(*) n "
    asked += "FROM visits GROUP BY note"
    plan = visits.plan(asked, Limits(rows=3, groups=2, units=9))
    assert plan.selection is not None
    assert (plan.groups, plan.measures[0].clip, plan.selection.units) == (1, 3, 9)


def test_a_least_number_of_units_is_for_groups_that_are_found(visits):
    assert "changes nothing" in visits.plan(f"{WITH}(min_privacy_units_per_group=9) {BY_REGION}").notes[-1]
    assert not visits.plan(f"{WITH}(min_privacy_units_per_group=9) note, COUNT(*) FROM visits GROUP BY note").notes


@pytest.mark.parametrize(
    ("named", "table"),
    [
        *((each, "visits") for each in ("user_id", "USER_ID", '"user_id"', "visits.user_id", 'Visits."User_Id"')),
        ("user_id", "visits v"),
        ("V.user_id", "visits v"),
        ("v.user_id", "visits v JOIN visits w ON v.user_id = w.user_id"),
        ("w.user_id", "visits v JOIN visits w ON v.user_id = w.user_id"),
        ("members.user_id", "(SELECT * FROM visits) AS members"),
        ("people.user_id", "(SELECT user_id, SUM(amount) AS total FROM visits GROUP BY user_id) AS people"),
    ],
)
def test_the_unit_may_be_named_if_it_is_the_units_name(named, table, visits):
    plan = visits.plan(f"{WITH}(privacy_unit_column = {named}) COUNT(*) FROM {table}")
    assert plan.canonical() == visits.plan(f"SELECT COUNT(*) FROM {table}").canonical()


@pytest.mark.parametrize(
    ("named", "table"),
    [
        ("v.age", "visits v JOIN visits w ON v.user_id = w.user_id"),
        ("x.user_id", "visits v JOIN visits w ON v.user_id = w.user_id"),
        ("people.total", "(SELECT user_id, SUM(amount) AS total FROM visits GROUP BY user_id) AS people"),
    ],
)
def test_the_unit_cannot_be_changed_over_several_tables(named, table, visits):
    error = visits.error(f"{WITH}(privacy_unit_column = {named}) COUNT(*) FROM {table}")
    assert isinstance(error, NotAllowedError) and error.at == Place(1, 42)


def test_a_unit_that_several_tables_have_needs_its_tables_name(visits):
    both = "visits v JOIN visits w ON v.user_id = w.user_id"
    error = visits.error(f"{WITH}(privacy_unit_column = user_id) COUNT(*) FROM {both}")
    assert isinstance(error, InputError) and error.at == Place(1, 42) and "v.user_id" in error.fix


def test_bounds_are_for_what_is_released_and_not_for_what_is_within_one_unit(visits):
    per_person = "(SELECT user_id, SUM(amount{}) AS total FROM visits GROUP BY user_id) AS people"
    bounds = ", contribution_bounds_per_group => (0, 50)"
    (measure,) = visits.plan(f"SELECT SUM(total{bounds}) FROM {per_person.format('')}").measures
    assert measure.clip * measure.step == 50
    error = visits.error(f"SELECT SUM(total) FROM {per_person.format(bounds)}")
    assert isinstance(error, QuestionRefusedError) and "no place here" in error.message


@pytest.mark.parametrize("named", ["age", "visits.age", "other.user_id", "a.visits.user_id", "row_id", "user"])
def test_the_unit_cannot_be_changed(named, visits):
    error = visits.error(f"{WITH}(epsilon = 1,\n  privacy_unit_column = {named})\nCOUNT(*) FROM visits")
    assert isinstance(error, NotAllowedError) and error.at == Place(2, 3) and "user_id" in error.fix


@pytest.mark.parametrize(
    ("named", "nearest"),
    [("user_di", "user_id"), ("agee", "age"), ("nobody", None), ('""', None), ("v.userid", "user_id")],
)
def test_a_unit_that_is_no_column_is_refused_with_the_nearest_one_and_what_the_unit_is(named, nearest, visits):
    error = visits.error(f"{WITH}(privacy_unit_column = {named}) COUNT(*) FROM visits v")
    assert isinstance(error, NotAllowedError) and error.at == Place(1, 42)
    assert "There is no column" in error.why and "protects each user_id" in error.why and "= user_id" in error.fix
    assert ("the nearest is" in error.why) == (nearest is not None) and (nearest is None or repr(nearest) in error.why)


def test_another_column_than_the_unit_is_not_called_missing(visits):
    error = visits.error(f"{WITH}(privacy_unit_column = AGE) COUNT(*) FROM visits")
    assert isinstance(error, NotAllowedError) and "no column" not in error.why and "each user_id" in error.why


def test_a_unit_of_two_columns_has_no_name(asker):
    both = asker(unit='["user_id", "when"]')
    assert isinstance(both.error(f"{WITH}(privacy_unit_column=user_id) COUNT(*) FROM visits"), NotAllowedError)
    both.plan(f"{WITH}(epsilon=1) COUNT(*) FROM visits")


# A table in which BigQuery's meaning can be computed by hand: unit, region, amount.
ROWS = [
    (1, "north", 30.0), (1, "north", 90.0), (1, "south", 5.0),
    (2, "south", 40.0), (2, "south", 40.0), (2, "south", 40.0), (2, "south", 40.0),
    (3, "east", 7.0), (3, "east", None),
    (4, "west", 99.0),
]  # fmt: skip


@pytest.fixture
def engine(memory):
    units, regions, amounts = zip(*ROWS, strict=True)
    columns = {"user_id": pa.array(units), "region": pa.array(regions), "amount": pa.array(amounts, pa.float64())}
    others = {
        "age": pa.int64(),
        "child": pa.int64(),
        "change": pa.float64(),
        "free": pa.float64(),
        "smoker": pa.bool_(),
    }
    others |= {"when": pa.date32(), "at": pa.timestamp("us"), "note": pa.string(), "odd name": pa.int64()}
    columns |= {name: pa.nulls(len(ROWS), kind) for name, kind in others.items()}
    return memory(pa.table(columns))


def integers(plan, engine):
    """What would be released of the first measure, without noise: by region, in its own units."""
    (first, *_), measure = exact_steps(plan, engine, "salt"), plan.measures[0]
    return [Fraction(each) * measure.step for each in first]


REGIONS = ("north", "south", "east", "west")


def by_unit(region):
    parts: dict[int, list[float | None]] = {}
    for unit, where, amount in ROWS:
        if where == region:
            parts.setdefault(unit, []).append(amount)
    return parts.values()


def test_where_a_unit_is_in_one_group_a_total_is_clamped_as_bigquery_does(visits, engine):
    asked = "region, SUM(amount, contribution_bounds_per_group => (0, 100)) FROM visits GROUP BY region"
    plan = visits.plan(f"{WITH}(epsilon=1) {asked}")
    clamped = [sum(min(100, sum(x or 0 for x in part)) for part in by_unit(region)) for region in REGIONS]
    found = integers(plan, engine)
    assert clamped == [100, 105, 7, 99]
    assert found[2:] == clamped[2:]  # units 3 and 4 are in one group
    # Unit 1 has 120 in the north and 5 in the south: its vector is brought within 100, so that less is left of both.
    assert 99 < found[0] < 100 and 104 < found[1] < 105
    assert "BigQuery clamps each group by itself" in plan.notes[-1]


def test_no_unit_adds_more_to_a_group_than_its_bounds(visits, memory):
    plan = visits.plan(
        f"{WITH}() region, COUNT(*, contribution_bounds_per_group => (0, 3)) FROM visits GROUP BY region"
    )
    names = ["user_id", "region", *(name for name in visits.table.policy.columns if name != "region")]
    kinds = {"user_id": pa.int64(), "region": pa.string()}
    for counts in product((0, 1, 4, 9), repeat=2):
        regions = [region for region, n in zip(REGIONS, counts, strict=False) for _ in range(n)]
        columns = {"user_id": [1] * len(regions), "region": regions}
        table = pa.table({name: pa.array(columns.get(name, [None] * len(regions)), kinds.get(name)) for name in names})
        found = exact_steps(plan, memory(table), "salt")[0]
        assert all(each <= min(3, n) for each, n in zip(found, (*counts, 0, 0), strict=True))
        assert sum(each**2 for each in found) <= 9


def test_a_total_limits_what_could_be_typed_as_total(visits):
    for per in (
        "SUM(amount, contribution_bounds_per_group => (0, 100))",
        "SUM(amount, contribution_bounds_per_group=>(-100, 2))",
    ):
        plan = visits.plan(f"{WITH}() {per} FROM visits")
        assert plan.key(1) == visits.plan(
            "SELECT SUM(amount) FROM visits", Limits(totals={"amount": Fraction(100)})
        ).key(1)
    plan = visits.plan(f"{WITH}() COUNT(*, contribution_bounds_per_group => (0, 4)) FROM visits")
    assert plan.key(1) == visits.plan("SELECT COUNT(*) FROM visits", Limits(rows=4)).key(1)


@pytest.mark.parametrize(
    ("asked", "clip"),
    [
        ("COUNT(*, contribution_bounds_per_group => (0, 100))", 10),
        ("COUNT(*, contribution_bounds_per_group => (2, 4.9))", 4),
        ("SUM(amount, contribution_bounds_per_group => (0, 1e9))", 800_000),
        ("SUM(amount, contribution_bounds_per_group => (0, 12.345))", 1234),
        ("SUM(change, contribution_bounds_per_group => (-3, 2))", 6),
        ("SUM(change, contribution_bounds_per_group => ( - 3.5 , +2 ))", 7),
        ("SUM(age + amount, contribution_bounds_per_group => (0, 1))", 100),
        ("COUNT(DISTINCT note, contribution_bounds_per_group => (0, 1))", 1),
        ("COUNT(DISTINCT note, contribution_bounds_per_group => (0, 100))", 2),
        ("COUNT(DISTINCT user_id, contribution_bounds_per_group => (0, 1))", 1),
        ("SUM(smoker, contribution_bounds_per_group => (0, 2))", 2),
        ("SUM(smoker, contribution_bounds_per_group => (0, 0.5))", 1),  # a row at least
        ("SUM(amount, contribution_bounds_per_row => (0, 10), contribution_bounds_per_group => (0, 20))", 200_000 * 10),
    ],
)
def test_bounds_of_an_aggregate_only_lower_its_clip(asked, clip, visits):
    (measure,) = visits.plan(f"{WITH}() {asked} FROM visits").measures
    assert measure.clip == clip


def test_bounds_work_where_the_policy_declares_no_limit(asker):
    free = asker(contribution="")
    assert isinstance(free.error("SELECT COUNT(*) FROM visits"), NotAllowedError)
    (measure,) = free.plan("SELECT COUNT(*, contribution_bounds_per_group => (0, 6)) FROM visits").measures
    assert measure.clip == 6
    (measure,) = free.plan("SELECT SUM(age, contribution_bounds_per_group => (0, 60)) FROM visits").measures
    assert measure.clip == 60


def test_each_aggregate_has_its_own_bounds(visits):
    asked = (
        "SUM(amount, contribution_bounds_per_group => (0, 10)) a, SUM(amount) b, AVG(amount) c, "
        "SUM(amount, contribution_bounds_per_group => (0, 20)) d, COUNT(*, contribution_bounds_per_group => (0, 1)) e"
    )
    plan = visits.plan(f"{WITH}() {asked} FROM visits ORDER BY SUM(amount, contribution_bounds_per_group => (0, 10))")
    clips = [plan.statistics[plan.answers[each]].measures[0].clip for each in plan.question.aggregates]
    assert clips == [1000, 800_000, 10, 2000, 1]  # of the average, the first measure is its rows
    assert len(plan.statistics) == 5


def test_a_limit_that_was_chosen_is_not_searched_again(visits):
    found = Found(rows=300, totals={"amount": Fraction(9000)}, units=1000, row_count=90_000)
    policy = replace(visits.table.policy, contribution=replace(visits.table.policy.contribution, rows=None, totals={}))
    table = replace(visits.table, policy=policy, found=found)
    asked = "SELECT COUNT(*{}) n, SUM(age) FROM visits WHERE smoker"
    plan = plan_question(asked.format(""), {"visits": table})
    assert [bool(each.search) for each in plan.measures] == [True, True]
    plan = plan_question(asked.format(", contribution_bounds_per_group => (0, 4)"), {"visits": table})
    assert [bool(each.search) for each in plan.measures] == [False, True]


@pytest.mark.parametrize("per", ["contribution_bounds_per_row", "contribution_bounds_per_group"])
def test_values_are_clamped_and_null_stays_null(per, visits, engine):
    plan = visits.plan(f"{WITH}() AVG(amount, {per} => (35, 60)) FROM visits")
    rows, summed = (vector[0] for vector in exact_steps(plan, engine, "salt"))
    measure = plan.measures[1]
    kept = [amount for _, _, amount in ROWS if amount is not None]
    assert rows == len(kept)
    found = (Fraction(summed) + rows * measure.centre) * measure.step
    assert found == sum(min(60, max(35, each)) for each in kept)


@pytest.mark.parametrize("kind", ["VAR_POP", "STDDEV", "AVG", "SUM", "MEDIAN"])
def test_a_clamped_value_is_the_same_question_as_one_that_is_clipped_in_words(kind, visits):
    asked = f"{WITH}() {kind}(amount, contribution_bounds_per_row => (5, 60)) FROM visits"
    words = f"SELECT {kind}(LEAST(GREATEST(amount, 5), 60)) FILTER (WHERE amount IS NOT NULL) FROM visits"
    assert visits.plan(asked).key(1) == visits.plan(words).key(1)


@pytest.mark.parametrize("bounds", ["(0, 5000)", "(-1, 9999)", "(-1e9, 1e9)"])
@pytest.mark.parametrize("kind", ["VAR_POP", "AVG", "SUM", "MEDIAN"])
def test_bounds_that_are_no_tighter_change_nothing(bounds, kind, visits):
    plan = visits.plan(f"{WITH}() {kind}(amount, contribution_bounds_per_row => {bounds}) FROM visits")
    assert plan.key(1) == visits.plan(f"SELECT {kind}(amount) FROM visits").key(1)


@pytest.mark.parametrize(
    ("bounds", "range_"), [("(-5, 60)", (0, 60)), ("(10, 9999)", (10, 5000)), ("(6e3, 7e3)", (6000, 7000))]
)
def test_a_clamp_never_widens_what_holds(bounds, range_, visits):
    (statistic,) = visits.plan(f"{WITH}() AVG(amount, contribution_bounds_per_row => {bounds}) FROM visits").statistics
    assert range_[0] <= statistic.low <= statistic.high <= range_[1]


def test_a_column_without_bounds_can_be_summed_between_those_of_the_question(visits):
    assert isinstance(visits.error("SELECT AVG(free) FROM visits"), NotAllowedError)
    (statistic,) = visits.plan("SELECT AVG(free, contribution_bounds_per_row => (-2, 3)) FROM visits").statistics
    assert (statistic.low, statistic.high) == (-2, 3)


def test_a_total_still_holds_for_a_clamped_value(visits):
    (measure,) = visits.plan(f"{WITH}() SUM(amount, contribution_bounds_per_row => (0, 4000)) FROM visits").measures
    assert measure.clip * measure.step == 8000


@pytest.mark.parametrize(
    ("aggregate", "fix"),
    [
        ("VAR_POP(age, contribution_bounds_per_group => (0, 1))", "contribution_bounds_per_row"),
        ("VAR_POP(age, contribution_bounds_per_group => (0, 0))", "contribution_bounds_per_row"),
        ("PERCENTILE_CONT(age, 0.5, contribution_bounds_per_group => (0, 1))", "contribution_bounds_per_row"),
        ("COUNT(*, contribution_bounds_per_row => (0, 1))", "contribution_bounds_per_group"),
        ("COUNT(DISTINCT age, contribution_bounds_per_row => (0, 1))", "contribution_bounds_per_group"),
        ("CORR(age, amount, contribution_bounds_per_row => (0, 1))", "Leave it out"),
        ("COUNT_IF(smoker, contribution_bounds_per_row => (0, 1))", "contribution_bounds_per_group"),
        ("SUM(ABS(age, contribution_bounds_per_row => (0, 1)))", "behind the argument"),
        ("QUANTILE_CONT(age, 0.5, contribution_bounds_per_row => (0, 1))", "PERCENTILE_CONT"),
        ("MIN(age, contribution_bounds_per_row => (0, 1))", "PERCENTILE_CONT"),
    ],
)
def test_bounds_that_an_aggregate_has_no_use_for_are_refused(aggregate, fix, visits):
    error = visits.error(f"SELECT {aggregate} FROM visits")
    assert isinstance(error, QuestionRefusedError) and fix in error.fix
    assert error.at is not None and error.at.column > len("SELECT ")


@pytest.mark.parametrize("bounds", ["(0, 0)", "(-3, 0.5)", "(0, 0.99)"])
def test_bounds_that_leave_nothing_are_refused(bounds, visits):
    error = visits.error(f"SELECT COUNT(*, contribution_bounds_per_group => {bounds}) FROM visits")
    assert isinstance(error, InputError) and "nothing to count" in error.message


# --- the old clause


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ANON_SUM(amount CLAMPED BETWEEN 0 AND 100)", "SUM(amount, contribution_bounds_per_group => (0, 100))"),
        ("ANON_AVG(amount CLAMPED BETWEEN -1 AND 100)", "AVG(amount, contribution_bounds_per_group => (-1, 100))"),
        ("ANON_COUNT(*)", "COUNT(*)"),
        ("anon_count(age clamped between 0 and 3)", "COUNT(age, contribution_bounds_per_group => (0, 3))"),
        ("ANON_VAR_POP(age CLAMPED BETWEEN 20 AND 30)", "VAR_POP(age, contribution_bounds_per_row => (20, 30))"),
        ("ANON_STDDEV_POP(age)", "STDDEV_POP(age)"),
        (
            "ANON_QUANTILES(age, 4 CLAMPED BETWEEN 20 AND 30)",
            "APPROX_QUANTILES(age, 4, contribution_bounds_per_row => (20, 30))",
        ),
        (
            "ANON_PERCENTILE_CONT(age, 0.25 CLAMPED BETWEEN 20 AND 30)",
            "PERCENTILE_CONT(age, 0.25, contribution_bounds_per_row => (20, 30))",
        ),
    ],
)
def test_the_old_clause_means_the_same(old, new, visits):
    asked = f"SELECT WITH ANONYMIZATION OPTIONS(epsilon=1, kappa=1) region, {old} FROM visits GROUP BY region"
    now = f"{WITH}(epsilon=1, max_groups_contributed=1) region, {new} FROM visits GROUP BY region"
    assert visits.plan(asked).key(1) == visits.plan(now).key(1)


@pytest.mark.parametrize(
    "asked",
    [
        f"{WITH}(kappa=1) COUNT(*) FROM visits",
        "SELECT WITH ANONYMIZATION ABS(age CLAMPED BETWEEN 0 AND 9) FROM visits",
        "SELECT WITH ANONYMIZATION ANON_SUM(age CLAMPED BETWEEN 0) FROM visits",
        "SELECT WITH ANONYMIZATION ANON_SUM(age CLAMPED BETWEEN AND 3) FROM visits",
        "SELECT WITH ANONYMIZATION OPTIONS(max_groups_contributed=1, kappa=1) COUNT(*) FROM visits",
    ],
)
def test_old_words_belong_to_the_old_clause(asked, visits):
    assert isinstance(visits.error(asked), (InputError, QuestionRefusedError, SqlSyntaxError))


# --- places


@pytest.mark.parametrize(
    ("text", "kind", "line", "column"),
    [
        (f"{WITH}(epsilom = 1) COUNT(*) FROM visits", QuestionRefusedError, 1, 42),
        ("SELECT\n WITH DIFFERENTIAL_PRIVACY\n  OPTIONS(\n\tdelta=0,\n\tk=3)\nCOUNT(*)", QuestionRefusedError, 5, 2),
        (f"{WITH}(epsilon = 0) COUNT(*) FROM visits", InputError, 1, 52),
        (f"{WITH}(epsilon = -1) COUNT(*) FROM visits", InputError, 1, 52),
        (f"{WITH}(epsilon = @e) COUNT(*) FROM visits", InputError, 1, 52),
        (f"{WITH}(epsilon = 1 + 1) COUNT(*) FROM visits", InputError, 1, 52),
        (f"{WITH}(epsilon = 'x') COUNT(*) FROM visits", InputError, 1, 52),
        (f"{WITH}(delta = 1) COUNT(*) FROM visits", InputError, 1, 50),
        (f"{WITH}(max_groups_contributed = 0) COUNT(*) FROM visits", InputError, 1, 67),
        (f"{WITH}(max_groups_contributed = 1.5) COUNT(*) FROM visits", InputError, 1, 67),
        (f"{WITH}(privacy_unit_column = 3) COUNT(*) FROM visits", InputError, 1, 64),
        (f"{WITH}(privacy_unit_column = a b) COUNT(*) FROM visits", InputError, 1, 64),
        (f"{WITH}(group_selection_strategy = X) COUNT(*) FROM visits", InputError, 1, 69),
        (f"{WITH}(epsilon = 1, epsilon = 1) COUNT(*) FROM visits", InputError, 1, 55),
        (f"{WITH}(epsilon) COUNT(*) FROM visits", SqlSyntaxError, 1, 49),
        (f"{WITH}(epsilon = 1,) COUNT(*) FROM visits", SqlSyntaxError, 1, 54),
        (f"{WITH}(epsilon = ) COUNT(*) FROM visits", SqlSyntaxError, 1, 52),
        (f"{WITH}(epsilon = 1", SqlSyntaxError, 1, 52),
        (f"{WITH}(epsilon = 1, 'a' = 2) COUNT(*) FROM visits", SqlSyntaxError, 1, 55),
        ("SELECT SUM(age, contribution_bounds_per_group => 3) FROM visits", SqlSyntaxError, 1, 50),
        ("SELECT SUM(age, contribution_bounds_per_group => (3)) FROM visits", SqlSyntaxError, 1, 50),
        ("SELECT SUM(age, contribution_bounds_per_group => (1, 2, 3)) FROM visits", SqlSyntaxError, 1, 50),
        ("SELECT SUM(age, contribution_bounds_per_group => (1, x)) FROM visits", InputError, 1, 54),
        ("SELECT SUM(age, contribution_bounds_per_group => (2, 1)) FROM visits", InputError, 1, 17),
        ("SELECT SUM(age, contribution_bounds_per_group => (1, 2) + 1) FROM visits", SqlSyntaxError, 1, 57),
        ("SELECT SUM(contribution_bounds_per_group => (1, 2), age) FROM visits", SqlSyntaxError, 1, 12),
        ("SELECT contribution_bounds_per_group => (1, 2) FROM visits", SqlSyntaxError, 1, 8),
        # behind the clause, every place is what it was
        (f"{WITH}(epsilon = 1)\n COUNT(*) FORM visits", SqlSyntaxError, 2, 16),
        (f"{WITH}(\n epsilon = 1\n) COUNT(*) FROM visits\nWHERE bogus = 1", DaleniusError, 4, 7),
        (f"{WITH}() SUM(age, contribution_bounds_per_group => (0, 10)), bogus FROM visits", DaleniusError, 1, 96),
        (f"{WITH}(epsilon = 1 /* ü\nü */) 'ü', COUNT(*) FROM visits WHERE )", SqlSyntaxError, 2, 39),
        (f"{WITH}(epsilon = 1)\r\n COUNT(*) FROM visits WHERE note = 'x", SqlSyntaxError, 2, 36),
    ],
)  # fmt: skip
def test_a_mistake_is_pointed_at_inside_of_the_clause_and_behind_it(text, kind, line, column, visits):
    error = visits.error(text)
    assert isinstance(error, kind), repr(error)
    assert error.at == Place(line, column)
    assert "No budget was spent." in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT\twith/**/differential_privacy--x\n options\n(\nEPSILON\n=\n.5\n)region,COUNT(*)FROM visits GROUP BY 1",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=5e-1)region, COUNT(*) FROM visits GROUP BY region",
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY /* OPTIONS(epsilon=3) */ OPTIONS(epsilon=0.50 /* ) */) region, COUNT(*) "
            "FROM visits GROUP BY 1"
        ),
        (
            'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column="user_id" , epsilon= 000.5) region, COUNT(*) '
            "FROM visits GROUP BY 1"
        ),
    ],
)
def test_odd_spacing_and_remarks_change_nothing(text, visits):
    assert said(text).epsilon == 0.5
    blanked = cut_clause(text)[0]
    assert len(blanked) == len(text) and [*map(len, blanked.split("\n"))] == [*map(len, text.split("\n"))]
    assert visits.plan(text).key(1) == visits.plan(f"SELECT {BY_REGION}").key(1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits WHERE note = 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)'",
        "SELECT COUNT(*) FROM visits -- SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)",
        "SELECT COUNT(*) AS differential_privacy FROM visits",
        'SELECT COUNT(*) AS "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)" FROM visits',
        "SELECT COUNT(*) /* , contribution_bounds_per_group => (0, 1) */ FROM visits",
        "SELECT COUNT(*) contribution_bounds_per_group FROM visits",
        "SELECT COUNT(*) FROM visits WHERE note = ', contribution_bounds_per_group => (0, 1)'",
        "SELECT COUNT(*) FROM visits WHERE note = 'it''s WITH DIFFERENTIAL_PRIVACY'",
    ],
)
def test_the_same_words_elsewhere_are_left_alone(text, visits):
    assert cut_clause(text) == (text, Options())
    visits.plan(text)


@pytest.mark.parametrize(
    "text",
    [
        'SELECT WITH "DIFFERENTIAL_PRIVACY" OPTIONS(epsilon=1) COUNT(*) FROM visits',
        "SELECT WITH AGGREGATION_THRESHOLD OPTIONS(threshold=1) COUNT(*) FROM visits",
        "SELECT DISTINCT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM visits",
        "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)",
        "SELECT * FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM visits)",
        f"{WITH}(epsilon=1) COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits)",
        f"{WITH}(epsilon=1) {WITH}(epsilon=2) COUNT(*) FROM visits",
        f"{WITH}(epsilon=1) COUNT(*) FROM visits; {WITH}(epsilon=1) COUNT(*) FROM visits",
        f"{WITH}(epsilon=1); DROP TABLE visits",
        f"{WITH}(epsilon=1)",
        "SELECT WITH DIFFERENTIAL_PRIVACY",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS",
        f"{WITH}((epsilon=1)) COUNT(*) FROM visits",
        f"{WITH}(epsilon=(((((1))))) COUNT(*) FROM visits",
        f"{WITH}(epsilon=(SELECT MAX(age) FROM visits)) COUNT(*) FROM visits",
        f"{WITH}(epsilon=1e999999999) COUNT(*) FROM visits",
        f"{WITH}(epsilon={'9' * 5000}) COUNT(*) FROM visits",
        f"{WITH}(epsilon=1_0) COUNT(*) FROM visits",
        f"{WITH}(epsilon=NaN) COUNT(*) FROM visits",
        f"{WITH}(epsilon=NULL) COUNT(*) FROM visits",
        f"{WITH}(max_rows_contributed={'9' * 40}) COUNT(*) FROM visits",
        f"{WITH}(privacy_unit_column=user_id; COUNT(*) FROM visits",
        f"{WITH}(privacy_unit_column=user_id.) COUNT(*) FROM visits",
        f"{WITH}(privacy_unit_column='user_id') COUNT(*) FROM visits",
        f"{WITH}(privacy_unit_column=read_csv('/etc/passwd')) COUNT(*) FROM visits",
        f"{WITH}({'epsilon' * 2000}=1) COUNT(*) FROM visits",
        f"{WITH}{'(' * 4000}epsilon=1{')' * 4000} COUNT(*) FROM visits",
        "SELECT SUM(age, contribution_bounds_per_group => (0, 1e101)) FROM visits",
        "SELECT SUM(age, contribution_bounds_per_group => (0, 1), contribution_bounds_per_group => (0, 2)) FROM visits",
        "SELECT SUM(age, contribution_bounds_per_group => (0, 1) FROM visits",
        "SELECT SUM(age), contribution_bounds_per_group => (0, 1) FROM visits",
        "SELECT (age, contribution_bounds_per_group => (0, 1)) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE age IN (1, contribution_bounds_per_row => (0, 1))",
        "SELECT SUM(note, contribution_bounds_per_row => (0, 1)) FROM visits",
        "SELECT SUM(SUM(age), contribution_bounds_per_row => (0, 1)) FROM visits",
        f"{WITH}(epsilon=1) COUNT(*) FROM visits WHERE note = 'open",
        f"{WITH}(epsilon=1\0) COUNT(*) FROM visits",
        "SELECT WITH ANONYMIZATION" + " ANON_SUM(" * 1900,
    ],
)
def test_hostile_texts_are_refused_with_a_reason(text, visits):
    assert len(text) <= LONGEST
    error = visits.error(text)
    assert error.exit_code in {2, 3} and error.why and error.fix and len(str(error)) < 2000


def test_the_clause_belongs_to_the_outer_select():
    inner = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) AS n FROM visits"
    with pytest.raises(QuestionRefusedError, match="in a subquery") as caught:
        cut_clause(f"SELECT SUM(n)\nFROM ({inner})")
    assert caught.value.at == Place(2, 14)
    with pytest.raises(QuestionRefusedError, match="in a subquery"):
        cut_clause(f"WITH found AS ({inner}) SELECT SUM(n) FROM found")
    with pytest.raises(QuestionRefusedError, match="two clauses") as caught:
        cut_clause(f"{inner}\nUNION ALL {inner}")
    assert caught.value.at == Place(2, 18)
    text, options = cut_clause(f"WITH north AS (SELECT * FROM visits) {inner}")
    assert options.epsilon == 1
    assert " ".join(text.split()) == "WITH north AS (SELECT * FROM visits) SELECT COUNT(*) AS n FROM visits"


# --- price and δ

REGIONS_PAID = f"{WITH}(epsilon=0.25) {BY_REGION}"
SHOP = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 30.0
delta = 1e-4
[analysts.ana]
epsilon = 20.0
[columns.region]
type = "category"
keys = ["north", "south"]
[columns.product]
type = "category"
[contribution]
rows = 4
groups = 2
"""


@pytest.fixture
def ana(place):
    return laid(place, "test_clause", lay).analyst("ana")


def lay(folder):
    people = range(600)
    columns = {"user_id": [*people], "region": ["north", "south"] * 300, "product": ["apple", "pear"] * 300}
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    (folder / "visits.toml").write_text(SHOP)
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml")
    return curator


def test_the_clause_is_the_price(ana):
    assert [each.epsilon for each in ana.preview(REGIONS_PAID).choices] == [0.25]
    release = ana.ask(REGIONS_PAID)
    assert release.charge["epsilon"] == 0.25 and release.question == REGIONS_PAID
    assert ana.ask(REGIONS_PAID, epsilon=0.25).free


@pytest.mark.parametrize(
    "again",
    [
        (f"SELECT {BY_REGION}", {"epsilon": 0.25}),
        (f"SELECT {BY_REGION}", {"epsilon": 0.1}),
        (f"SELECT {BY_REGION}", {"epsilon": 0.25, "limits": Limits(groups=2)}),
        (f"{WITH}(epsilon=0.2, max_groups_contributed=2, privacy_unit_column=user_id) {BY_REGION}", {}),
        (f"{WITH}(epsilon=0.25, delta=1e-9, max_groups_contributed=50) {BY_REGION};", {}),
        (f"SELECT WITH ANONYMIZATION OPTIONS(epsilon=0.25) {BY_REGION.replace('COUNT', 'ANON_COUNT')}", {}),
    ],
)
def test_with_and_without_the_clause_it_is_the_same_question(again, ana):
    first = ana.ask(REGIONS_PAID)
    text, given = again
    release = ana.ask(text, **given)
    assert release.free and release.rows == first.rows


def test_a_tighter_clause_is_another_question(ana):
    ana.ask(REGIONS_PAID)
    assert not ana.ask(REGIONS_PAID.replace("0.25", "0.25, max_groups_contributed=1")).free
    assert not ana.ask(REGIONS_PAID.replace("COUNT(*)", "COUNT(*, contribution_bounds_per_group => (0, 1))")).free


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"epsilon": 0.5}, "epsilon"),
        ({"delta": 1e-6}, "delta"),
        ({"epsilon": "x"}, "epsilon"),
    ],
)
@pytest.mark.parametrize("way", ["ask", "preview"])
def test_two_prices_are_a_mistake(given, what, way, ana):
    before = ana.budget()
    asked = REGIONS_PAID.replace("0.25", "0.25, delta=1e-7")
    with pytest.raises(InputError, match=what):
        getattr(ana, way)(asked, **given)
    assert ana.budget() == before


def test_beside_an_error_the_clause_says_the_most_to_pay(ana):
    (price,) = [each.epsilon for each in ana.preview(f"SELECT {BY_REGION}", error=40).choices]
    dear, cheap = (REGIONS_PAID.replace("0.25", f"{part * price}") for part in (0.9, 1.1))
    before = ana.budget()
    with pytest.raises(InputError, match="that you would pay"):
        ana.ask(dear, error=40)
    assert ana.budget() == before
    assert ana.ask(cheap, error=40).charge["epsilon"] == price


def test_the_clause_says_the_delta_for_finding_keys(ana):
    asked = f"{WITH}(epsilon=8, delta=2e-7) product, COUNT(*) FROM visits GROUP BY product"
    assert ana.ask(asked).charge["delta"] == 2e-7
    assert ana.ask("SELECT product, COUNT(*) FROM visits GROUP BY product", epsilon=8, delta=2e-7).free
    with pytest.raises(InputError, match="above 0"):
        ana.preview(asked.replace("2e-7", "0"))
    with pytest.raises(BudgetError):
        ana.ask(asked.replace("2e-7", ".01"))


def test_without_a_price_in_the_clause_there_is_none(ana):
    with pytest.raises(InputError, match="no price"):
        ana.ask(f"{WITH}(max_groups_contributed=1) {BY_REGION}")


@pytest.mark.parametrize("question", [None, 3, "x" * (LONGEST + 1), "\ud800", ""])
def test_what_is_no_question_is_told_as_before(question, ana):
    with pytest.raises(DaleniusError):
        ana.ask(question, epsilon=0.1)
