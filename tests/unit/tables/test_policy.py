"""Policies round-trip, versions tell what changed, steps are exact."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import PolicyInvalidError
from dalenius.tables import Bounds, BudgetSpec, Column, Contribution, Kind, Period, Policy, Time, read_text
from dalenius.tables.columns import MOST_STEPS, default_step, power_of_ten
from dalenius.tables.difference import difference
from dalenius.tables.policy import decimal_text

decimals = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=4).map(Fraction)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    str.isprintable
)
dates = st.dates(date(1900, 1, 1), date(2100, 1, 1))
datetimes = st.datetimes(datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2100-01-01"))


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(Kind))
    values = {Kind.INTEGER: st.integers(-(2**60), 2**60), Kind.NUMBER: decimals, Kind.DATE: dates}
    ordered = values | {Kind.DATETIME: datetimes}
    bounds = step = keys = None
    if kind in ordered and draw(st.booleans()):
        low, high = sorted(draw(st.tuples(ordered[kind], ordered[kind])))
        if low == high:
            high = high + (timedelta(days=1) if kind in {Kind.DATE, Kind.DATETIME} else 1)
        bounds = Bounds(low, high)
        step = default_step(low, high) if kind is Kind.NUMBER else Fraction(1) if kind is Kind.INTEGER else None
    if kind in {Kind.CATEGORY, Kind.TEXT}:
        keys = draw(st.none() | st.lists(texts, min_size=1, max_size=4, unique=True).map(tuple))
    default = draw(st.sampled_from(keys)) if keys and draw(st.booleans()) else bounds.low if bounds else None
    zone = draw(st.sampled_from([None, "UTC", "Europe/Berlin"])) if kind is Kind.DATETIME else None
    return Column(name, kind, bounds, step, keys, default, zone)


@st.composite
def policies(draw):
    found = draw(st.lists(names, max_size=5, unique_by=str.lower))
    made = {name: draw(columns(name)) for name in found}
    times = [name for name, column in made.items() if column.kind in {Kind.DATE, Kind.DATETIME}]
    period = Period(draw(st.sampled_from(times)), "week") if times and draw(st.booleans()) else None
    counts = st.none() | st.integers(1, 10**6)
    totals = {name: Fraction(7) for name, column in made.items() if column.summable}
    return Policy(
        name="t",
        source=('/somewhere/ü "x".parquet',),
        unit=tuple(draw(st.lists(names, min_size=1, max_size=3, unique=True))),
        neighbors=draw(st.sampled_from(Neighbors)),
        dataset=draw(st.sampled_from(["t", "shop"])),
        budget=BudgetSpec(draw(st.floats(1.0, 20.0)), 1e-6, "zcdp", period),
        analysts=draw(st.dictionaries(names, st.floats(0.01, 1.0), max_size=3)),
        columns=made,
        contribution=Contribution(draw(counts), draw(counts), totals),
        time=draw(st.sampled_from([Time(), Time(0.5, 60.0)])),
        anonymity=draw(st.sampled_from([{}, {"quasi": ["a b"], "weights": {"a b": Fraction(1, 4)}}])),
    )


@given(policies())
def test_a_policy_comes_back_from_its_text(policy):
    again = read_text(policy.text)
    assert again == policy
    assert (again.text, again.version, again.meaning) == (policy.text, policy.version, policy.meaning)
    assert difference(policy, again) == ()


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=8))
def test_decimals_are_written_exactly(value: Decimal):
    assert Fraction(Decimal(decimal_text(Fraction(value)))) == Fraction(value)


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_the_power_of_ten_is_the_nearest_by_ratio(value):
    power = power_of_ten(value)
    ratio = value / power
    assert Fraction(1, 10) <= ratio * ratio < 10


def test_default_steps_are_those_of_the_manual():
    assert default_step(Fraction(0), Fraction(5000)) == Fraction(1, 100)
    assert default_step(Fraction(0), Fraction(1)) == Fraction(1, 10**6)
    assert default_step(Fraction(-(10**6)), Fraction(10**6)) == 1
    far = Fraction(10**15)
    assert (far + 1) / default_step(far, far + 1) <= MOST_STEPS  # doubles must tell the steps apart


def test_a_version_covers_everything_and_meaning_what_answers_depend_on(visits):
    policy = read_text(visits)
    richer = replace(policy, budget=BudgetSpec(4.0, 1e-6), analysts={"bob": 1.0}, source=("/elsewhere.parquet",))
    assert richer.version != policy.version and richer.meaning == policy.meaning
    for other in (
        replace(policy, contribution=Contribution(10, 8, {"amount": Fraction(20000)})),
        replace(policy, columns={name: each for name, each in policy.columns.items() if name != "age"}),
        replace(policy, unit=("device",)),
        replace(policy, budget=BudgetSpec(3.0, 1e-6, period=Period("when", "month"))),
    ):
        assert other.meaning != policy.meaning and other.version != policy.version


def test_whether_answers_are_shared_is_said_only_where_they_are_not(visits):
    """So policies of before have the version they had; and nobody pays anew for an answer because of it."""
    shared = read_text(visits)
    assert shared.budget is not None
    private = replace(shared, budget=replace(shared.budget, share_answers=False))
    assert shared.budget.share_answers and "share_answers" not in shared.text
    assert "share_answers = false" in private.text and read_text(private.text) == private
    assert private.version != shared.version and private.meaning == shared.meaning
    (change,) = difference(shared, private)
    assert str(change) == "budget.share_answers: + false" and "one another" in change.note
    assert private.to_dict()["budget"]["share_answers"] is False
    assert read_text(visits.replace("[budget]", "[budget]\nshare_answers = true")) == shared


@pytest.mark.parametrize("value", ['"no"', "0", "[]", '"false"'])
def test_whether_answers_are_shared_is_true_or_false(visits, value):
    with pytest.raises(PolicyInvalidError, match="true or false") as caught:
        read_text(visits.replace("[budget]", f"[budget]\nshare_answers = {value}"))
    assert "budget.share_answers" in str(caught.value)


def test_how_delta_is_parted_is_said_only_where_it_is_not_in_halves(visits):
    """So policies of before have the version and the text they had, and stored answers stay good."""
    halves = read_text(visits)
    other = read_text(visits.replace("[budget]", "[budget]\nselection = 0.8"))
    assert halves.budget is not None and halves.budget.selection == 0.5 and "selection" not in halves.text
    assert read_text(visits.replace("[budget]", "[budget]\nselection = 0.5")).version == halves.version
    assert other.budget is not None and other.budget.selection == 0.8
    assert "selection = 0.8" in other.text and read_text(other.text) == other
    assert other.version != halves.version and other.meaning == halves.meaning
    (change,) = difference(halves, other)
    assert str(change) == "budget.selection: + 0.8" and "finding keys" in change.note
    assert other.to_dict()["budget"]["selection"] == 0.8


def test_the_order_of_sections_does_not_matter(visits):
    start, end = visits.index("[columns.age]"), visits.index("[columns.region]")
    moved = visits[:start] + visits[end:] + visits[start:end]
    assert read_text(moved).version == read_text(visits).version


def test_a_difference_names_places_in_order(visits):
    old, new = (
        read_text(visits),
        read_text(visits.replace("[18, 90]", "[18, 99]").replace("epsilon = 3.0", "epsilon = 2")),
    )
    new = replace(new, analysts={"bob": 0.5})
    changes = difference(old, new)
    assert [change.place for change in changes] == [
        "budget.epsilon",
        "analysts.bob.epsilon",
        "columns.age.bounds",
        "analysts.ana.epsilon",
    ]
    assert str(changes[2]) == "columns.age.bounds: [18, 90] → [18, 99]"
    assert changes[3].to_dict() == {
        "place": "analysts.ana.epsilon",
        "before": 1.0,
        "after": None,
        "note": "what this analyst may spend",
    }


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("rows = 300\n", "rows = 400\n", "higher: cuts off less of heavy units, and adds noise"),
        ("rows = 300\n", "rows = 200\n", "lower: cuts off more of heavy units, and adds less noise"),
        ("rows = 300\n", "", "no longer declared: 'protect' finds limits privately"),
        ("groups = 8\n", "", "no longer declared: one unit may be in any number of groups"),
        ("totals = { amount = 20000 }\n", "", "no longer declared: rows and bounds limit it"),
        ("", "[contribution]\nrows = 300\n", "declared now: what one unit adds beyond it is cut off"),
    ],
)
def test_a_changed_limit_says_what_that_change_does(visits, before, after, said):
    bare = visits[: visits.index("[contribution]")]
    old, new = (visits, visits.replace(before, after)) if before else (bare, bare + after)
    (change,) = difference(read_text(old), read_text(new))
    assert change.note.startswith(said) and change.note.endswith("asking again is charged")


def test_long_lists_of_keys_are_shown_by_what_came_and_went(visits):
    many = ", ".join(f'"key{number}"' for number in range(40))
    old = read_text(visits.replace('"north"', many))
    new = read_text(visits.replace('"north"', many.replace('"key7"', '"other"')))
    assert str(difference(old, new)[0]) == 'columns.region.keys: − ["key7"]  + ["other"]'


def test_a_step_that_is_no_decimal_is_refused(visits):
    policy = read_text(visits)
    amount = replace(policy.columns["amount"], step=Fraction(1, 3))
    with pytest.raises(PolicyInvalidError, match="not a decimal"):
        _ = replace(policy, columns={**policy.columns, "amount": amount}).text
