"""COUNT(DISTINCT x): a unit keeps at most K pairs of group and value, and the answers are those of a plain model."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest
from tests.whole import exact_steps

from dalenius.errors import NotAllowedError
from dalenius.measuring._exact import exact
from dalenius.measuring.plan import Found, Limits
from dalenius.measuring.statistics.distinct import USUAL
from dalenius.queries.plan_words import describe_plan
from dalenius.queries.preview import preview_plan
from dalenius.queries.rules.price import price_plan

SALT = "salt"
ARROW = pa.schema([("user_id", pa.int64()), ("region", pa.string()), ("note", pa.string()), ("free", pa.float64())])
REGIONS = ["north", "south", "east", "west"]


def asked(what, keys=""):
    return f"SELECT {what} FROM visits" + (f" GROUP BY {keys}" if keys else "")


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def model(plan, rows, column):
    """The definition, one row at a time: each unit's first K pairs by hash; per group, what is in any of them."""
    (measure,) = plan.measures
    pairs = defaultdict(set)
    for row in rows:
        group = (row["region"],) if plan.keys else ()
        if row["user_id"] is None or row[column] is None or not set(group) <= set(REGIONS):
            continue
        value = row[column] + 0.0 if column == "free" else row[column]
        pairs[row["user_id"]].add((group, value))
    kept = set()
    for unit, own in pairs.items():
        seed = md5(SALT + str(unit))
        kept |= set(sorted(own, key=lambda pair: md5("|".join([seed, *pair[0], str(pair[1])])))[: measure.clip])
    return [[sum(group == cell for group, _ in kept) for cell in plan.cells]]


def random_rows(chance):
    values = [None, "a", "b", "a|b", "", "ß", "it's", *(f"n{at}" for at in range(chance.choice([1, 10, 40])))]
    numbers = [None, 0.0, -0.0, 0.5, -0.5, 1.0, 0.1, 1e-5, *(float(at) for at in range(chance.choice([1, 20])))]
    return [
        {
            "user_id": chance.choice([None, 1, 2, 3, 4]),
            "region": chance.choice([None, *REGIONS, "mars"]),
            "note": chance.choice(values),
            "free": chance.choice(numbers),
        }
        for _ in range(chance.choice([0, 3, 30, 200]))
    ]


@pytest.mark.parametrize("block", range(4))
def test_the_engines_integers_are_those_of_the_plain_model(block, asker, memory):
    chosen = 0
    for case in range(20):
        chance = random.Random(f"{block} {case}")
        groups = chance.choice([1, 2, 3, 8, 500])
        who = asker(contribution=f"rows = 10\ngroups = {groups}", accounting=chance.choice(["zcdp", "pure"]))
        column, keys = chance.choice(["note", "free"]), chance.choice(["", "region"])
        plan = who.plan(asked(f"COUNT(DISTINCT {column})", keys))
        rows = random_rows(chance)
        found = exact(plan, memory(pa.Table.from_pylist(rows, ARROW)), SALT)
        assert found == model(plan, rows, column), (block, case)
        # any order of the rows, and any number of copies of them, is the same
        again = chance.sample(rows * 2, len(rows) * 2)
        assert exact(plan, memory(pa.Table.from_pylist(again, ARROW)), SALT) == found
        open_ = who.plan(asked(f"COUNT(DISTINCT {column})", keys))
        limit = replace(open_.measures[0], clip=10**6)
        everything = model(replace(open_, statistics=(replace(open_.statistics[0], measures=(limit,)),)), rows, column)
        chosen += everything != found
    assert chosen >= 3  # the limit did matter


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("keys", ["", "region"])
def test_a_unit_changes_the_counts_by_no_more_than_its_pairs(keys, accounting, neighbors, asker):
    (measure,) = asker(neighbors=neighbors, accounting=accounting).plan(asked("COUNT(DISTINCT note)", keys)).measures
    both = 2 if neighbors == "substitute" else 1
    assert measure.clip == 2
    assert measure.sensitivity == both * (2 if accounting == "pure" else 4)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_claimed_sensitivity_is_reached_and_never_passed(accounting, neighbors, asker, memory):
    plan = asker(neighbors=neighbors, accounting=accounting, contribution="groups = 3").plan(
        asked("COUNT(DISTINCT note)", "region")
    )
    power = 2 if accounting == "zcdp" else 1

    def rows(unit, region, letter, count=9):
        return [{"user_id": unit, "region": region, "note": f"{letter}{at}"} for at in range(count)]

    def counts(*parts):
        table = pa.Table.from_pylist([row for part in parts for row in part], ARROW)
        return exact(plan, memory(table), SALT)[0]

    others = rows(1, "south", "o")
    one = counts(others, rows(7, "north", "a"))
    other = counts(others, *([rows(8, "east", "b")] if neighbors == "substitute" else []))
    moved = sum(abs(a - b) ** power for a, b in zip(one, other, strict=True))
    assert moved == plan.measures[0].sensitivity
    spread = counts(others, *(rows(7, region, "c", 4) for region in REGIONS))
    assert sum(abs(a - b) ** power for a, b in zip(spread, counts(others), strict=True)) <= plan.measures[0].sensitivity


def test_values_that_others_have_too_are_counted_once(visits, memory):
    rows = [{"user_id": unit, "region": "north", "note": "same"} for unit in range(50)]
    plan = visits.plan(asked("COUNT(DISTINCT note)", "region"))
    assert exact(plan, memory(pa.Table.from_pylist(rows, ARROW)), SALT) == [[1, 0, 0, 0]]


def test_two_zeros_are_one_value_and_null_is_none(asker, memory):
    who = asker(contribution="groups = 9")
    rows = [{"user_id": 1, "free": value} for value in (0.0, -0.0, None, float("nan"), float("inf"), 1.0)]
    table = pa.Table.from_pylist(rows, ARROW)
    assert exact(who.plan(asked("COUNT(DISTINCT free)")), memory(table), SALT) == [[2]]
    assert exact(who.plan(asked("COUNT(DISTINCT free * -1)")), memory(table), SALT) == [[2]]
    assert exact(who.plan(asked("COUNT(DISTINCT free > 0)")), memory(table), SALT) == [[2]]
    assert exact(who.plan(asked("COUNT(DISTINCT 5)")), memory(table), SALT) == [[1]]
    assert exact(who.plan(asked("COUNT(DISTINCT NULL)")), memory(table), SALT) == [[0]]


def test_several_of_them_and_other_aggregates_go_together(asker, memory):
    rows = [{"user_id": at, "region": REGIONS[at % 2], "note": f"n{at % 5}", "free": float(at % 3)} for at in range(30)]
    plan = asker(contribution="rows = 10").plan(
        "SELECT COUNT(DISTINCT note), COUNT(*), COUNT(DISTINCT free) FILTER (WHERE note <> 'n1'), "
        "COUNT(DISTINCT user_id) FROM visits GROUP BY region"
    )
    found = exact_steps(plan, memory(pa.Table.from_pylist(rows, ARROW)), SALT)
    by_kind = {
        (statistic.kind, statistic.measures[0].written()[:14]): vector
        for statistic, vector in zip(plan.statistics, found, strict=True)
    }
    assert by_kind == {
        ("distinct", "distinct(free)"): [3, 3, 0, 0],
        ("distinct", "distinct(note)"): [5, 5, 0, 0],
        ("rows", "rows() where t"): [15, 15, 0, 0],
        ("units", "units() where "): [15, 15, 0, 0],
    }
    assert sum(each.share + each.search for each in plan.measures) == 1


def test_each_period_has_its_own_pairs(asker, memory):
    who = asker(period='period = { column = "when", every = "month" }', contribution="groups = 2")
    rows = [
        {"user_id": 1, "when": date(2025, month, 1), "note": f"{month} {at}"} for month in (1, 2, 3) for at in range(9)
    ]
    schema = pa.schema([("user_id", pa.int64()), ("when", pa.date32()), ("note", pa.string())])
    plan = who.plan(asked("COUNT(DISTINCT note)"))
    assert exact(plan, memory(pa.Table.from_pylist(rows, schema)), SALT) == [[6]]


# --- K


@pytest.mark.parametrize(
    ("what", "keys", "contribution", "limits", "most"),
    [
        ("note", "", "rows = 10\ngroups = 3", None, 3),
        ("note", "region", "rows = 10\ngroups = 3", None, 3),
        ("note", "", "rows = 10\ngroups = 3", Limits(groups=2), 2),
        ("note", "", "rows = 10\ngroups = 3", Limits(groups=5), 3),
        ("note", "", "rows = 10", Limits(groups=7), 7),
        ("note", "", "rows = 10", None, 10),
        ("note", "", "rows = 1000", None, USUAL),
        ("note", "", "groups = 50", None, 50),  # above any limit of rows
        ("region", "", "rows = 1000", None, 4),
        ("region", "smoker", "rows = 1000", None, 8),
        ("region", "", "", None, 4),  # its values are public: no limit is needed
        ("smoker", "", "", None, 2),
        ("LEFT(region, 1) = 'n'", "", "", None, 2),
        ('MONTH("when")', "", "", None, 12),
        ("FLOOR(amount / 1000)", "", "", None, 6),
        ("5", "", "", None, 1),
    ],
)
def test_the_limit_of_pairs_is_the_declared_one_or_a_usual_one(what, keys, contribution, limits, most, asker):
    alone = replace(limits or Limits(), search=0)  # the limit from which a question starts to look for its own
    plan = asker(contribution=contribution).plan(asked(f"COUNT(DISTINCT {what})", keys), alone)
    assert plan.measures[0].clip == most
    *kept, note = plan.notes
    assert f"at most {most:,} " in note and "left out" in note
    asked_for = None if limits is None else limits.groups
    higher = asked_for is not None and asked_for > most
    said = f"The table's own limit of groups is lower than the one you gave, and holds: {most}."
    assert kept == [said] * higher
    declared = "groups" in contribution or (limits is not None and limits.groups is not None)
    assert ("--groups" in note) == (what == "note" and not declared)


def test_a_found_limit_is_taken_before_a_usual_one(asker):
    who = asker(contribution="")
    found = Found(100, distinct={"note": 17, "region": 3})
    who = replace(who, table=replace(who.table, found=found))
    assert who.plan(asked("COUNT(DISTINCT note)")).measures[0].clip == 17
    assert who.plan(asked("COUNT(DISTINCT note)"), Limits(groups=2)).measures[0].clip == 2
    assert who.plan(asked("COUNT(DISTINCT region)")).measures[0].clip == 3
    assert who.plan(asked("COUNT(DISTINCT UPPER(note))")).measures[0].clip == USUAL
    assert Found.from_dict(found.to_dict()) == found
    old = {name: value for name, value in found.to_dict().items() if name != "distinct"}
    assert Found.from_dict(old).distinct == {}


def test_without_any_limit_nothing_is_counted(asker):
    error = asker(contribution="").error(asked("COUNT(DISTINCT note)"))
    assert isinstance(error, NotAllowedError) and "--groups N" in str(error)


def test_the_limit_is_part_of_what_is_stored(asker):
    who = asker(contribution="rows = 10")
    one, other = (who.plan(asked("COUNT(DISTINCT note)"), Limits(groups=each)).canonical() for each in (2, 3))
    assert one != other


def test_a_preview_tells_error_and_limit(visits):
    plan = visits.plan(asked("COUNT(DISTINCT note) AS n", "region"))
    price = price_plan(plan, 0.5)
    found = preview_plan(plan, (0.5,), 0.95, {})
    assert found.choices[0].noise_error == (float(price.mechanisms[0].noise.noise_error(0.95)),)
    assert "at most 2 pairs" in str(found)
    text = describe_plan(plan, price)
    assert "count distinct values of note" in text and "at most 2 pairs of group and value" in text
