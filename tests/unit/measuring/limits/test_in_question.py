"""A question finds its own limits: what is counted, what is chosen from it, what it costs, and when it is done."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from dalenius.accounting import costs
from dalenius.accounting.events import Zcdp
from dalenius.errors import InputError, LedgerCorruptError
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.limits.choosing import share_beyond
from dalenius.measuring.limits.clip_search import Clip, clip_notes, report_clips
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.limits.in_question import SUMMED, cut_off_total, cut_plan, fit_clip, lower_clips
from dalenius.measuring.plan import Found, Limits, Plan
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules.price import price_plan

FOUND = Found(
    rows=300, totals={"amount": Fraction(9000)}, norms={"region": 90}, units=1000, row_count=5000, distinct={"note": 5}
)
REGIONS = ("north", "south", "east", "west")
MONTHS = 'period = { column = "when", every = "month" }'


@pytest.fixture(scope="module")
def found(asker: Callable[..., Any]) -> Callable[..., Any]:
    """`found(accounting=…)`: who plans where limits were found at `protect`."""

    def made(**options: Any) -> Any:
        plain = asker(contribution=options.pop("contribution", ""), **options)
        return replace(plain, table=replace(plain.table, found=FOUND))

    return made


def rows(seed: int, people: int = 60) -> list[dict[str, Any]]:
    from datetime import date

    chance = random.Random(seed)
    return [
        {
            "user_id": person,
            "region": chance.choice([*REGIONS, None]),
            "amount": round(chance.paretovariate(0.7), 2),
            "change": chance.choice([-10.0, -0.5, 0.0, 3.0, None]),
            "smoker": chance.random() < 0.3,
            "when": date(2025, chance.randint(1, 2), 5),
            "note": chance.choice(["a", "b", "c"]),
        }
        for person in range(people)
        for _ in range(min(200, int(chance.paretovariate(0.8))))
    ]


def light(seed: int, people: int) -> list[dict[str, Any]]:
    """Rows of people who add little: at most eight rows, amounts up to 100."""
    chance = random.Random(seed)
    one = rows(seed, 1)[0]
    drawn = [person for person in range(people) for _ in range(chance.randint(1, 8))]
    return [
        one
        | {"user_id": person, "region": chance.choice(REGIONS), "amount": chance.uniform(1, 100)}
        | {"smoker": chance.random() < 0.5}
        for person in drawn
    ]


def engine(memory: Any, made: list[dict[str, Any]]) -> Any:
    types = {"user_id": "BIGINT", "region": "VARCHAR", "amount": "DOUBLE", "change": "DOUBLE", "when": "DATE"}
    return memory(pa.Table.from_pylist(made), types | {"smoker": "BOOLEAN", "note": "VARCHAR"})


# --- what is counted

INTEGERS: dict[str, Callable[[dict[str, Any]], int]] = {
    "COUNT(*)": lambda row: 1,
    "COUNT(*) FILTER (WHERE smoker)": lambda row: int(row["smoker"]),
    "SUM(amount)": lambda row: math.floor(min(5000.0, row["amount"]) / 0.01 + 0.5),
    "SUM(change)": lambda row: 0 if row["change"] is None else math.floor(row["change"] / 0.5 + 0.5),
}


def modelled(made: list[dict[str, Any]], aggregate: str, keyed: bool, filtered: bool, norm: str, months: bool):
    """Units by the class of their vector's length, by the definition."""
    vectors: dict[Any, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
    for row in made:
        if (filtered and not row["smoker"]) or (keyed and row["region"] is None):
            continue
        unit = (row["user_id"], row["when"].month if months else 0)
        vectors[unit][row["region"] if keyed else ""] += INTEGERS[aggregate](row)
    counts = [0] * CLASSES
    for vector in vectors.values():
        entries = [abs(each) for each in vector.values()]
        squared = sum(entries) ** 2 if norm == "l1" else sum(each * each for each in entries)
        length = math.isqrt(squared - 1) + 1 if squared else 0
        counts[next(at for at in range(CLASSES) if length**2 <= (2 ** (at - 1) if at else 0))] += 1
    return counts


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("aggregate", list(INTEGERS))
@pytest.mark.parametrize(("keyed", "filtered", "months"), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1), (0, 0, 1)])
def test_units_are_counted_by_the_length_of_their_vector(found, memory, accounting, aggregate, keyed, filtered, months):
    asker = found(accounting=accounting, period=MONTHS if months else "")
    sql = f"SELECT {'region, ' if keyed else ''}{aggregate} FROM visits{' WHERE smoker' if filtered else ''}"
    plan = asker.plan(sql + (" GROUP BY region" if keyed else ""), Limits(search=0.2))
    made = rows(7)
    (counts,) = exact_lengths(plan, engine(memory, made), "salt")
    assert counts == modelled(made, aggregate, bool(keyed), bool(filtered), plan.norm, bool(months))
    assert sum(counts) > 20


def test_a_unit_whose_rows_do_not_count_has_no_length(found, memory):
    plan = found().plan("SELECT COUNT(*) FILTER (WHERE smoker) FROM visits")
    made = [row | {"smoker": False} for row in rows(1)]
    ((none, *others),) = exact_lengths(plan, engine(memory, made), "salt")
    assert none == 60 and not any(others)


def test_no_rows_give_no_units(found, memory):
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    table = engine(memory, rows(1))
    table.table = table.table.slice(0, 0)
    assert exact_lengths(plan, table, "salt") == [[0] * CLASSES]


def test_only_the_groups_that_count_make_a_vector(found, memory):
    plan = found(contribution="groups = 1").plan("SELECT region, COUNT(*) FROM visits GROUP BY 1", Limits(search=0.1))
    made = [{**row, "region": REGIONS[at % 4]} for at, row in enumerate(rows(1, 1) * 8)]
    (counts,) = exact_lengths(plan, engine(memory, made), "salt")
    one_of_four = len(made) // 4
    assert counts[1 + math.ceil(2 * math.log2(one_of_four))] == sum(counts) == 1


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_one_unit_is_in_one_class_of_each_histogram(found, memory, neighbors, accounting):
    asker = found(neighbors=neighbors, accounting=accounting)
    plan = asker.plan(
        "SELECT region, COUNT(*), AVG(amount), VAR_POP(change) FROM visits GROUP BY 1", Limits(search=0.5)
    )
    assert len(plan.searched) == 6
    made = rows(3)
    other = [row for row in rows(4) if row["user_id"] == 7]
    without = [row for row in made if row["user_id"] != 7]
    tables = (made, without, [*without, *other], other)
    whole, less, exchanged, alone = (exact_lengths(plan, engine(memory, each), "salt") for each in tables)
    assert [sum(each) for each in alone] == [1] * 6
    for most, neighbour in ((1, less), (2, exchanged)):
        moved = [sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in zip(whole, neighbour, strict=True)]
        assert 0 < max(moved) <= most
    mechanism = price_plan(plan, 1.0).searches[0]
    change = mechanism.squared_sensitivity if isinstance(mechanism, DiscreteGaussian) else mechanism.sensitivity
    assert change == (2 if neighbors == "substitute" else 1)


# --- what all groups add up to

BY_BOTH = 'SELECT region, EXTRACT(MONTH FROM "when") AS m, {} FROM visits GROUP BY 1, 2'  # 4 × 12 groups


@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(amount)"])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_the_sum_of_totals_counts_each_unit_up_to_the_limit_and_moves_by_no_more(found, memory, what, neighbors):
    plan = found(neighbors=neighbors).plan(BY_BOTH.format(what), Limits(search=0.1))
    made = rows(3)
    measure = plan.measures[0]
    totals: dict[int, int] = defaultdict(int)
    for row in made:
        if row["region"] is not None:  # a row without a group is in none of them
            worth = (
                1 if what == "COUNT(*)" else min(math.floor(row["amount"] / float(measure.step) + 0.5), measure.high)
            )
            totals[row["user_id"]] += worth
    other = [row for row in rows(4) if row["user_id"] == 7]
    without = [row for row in made if row["user_id"] != 7]
    for limit in (1, 7, 40, 10**6):
        cut = cut_plan(plan, 0, limit)
        parts = 1 << cut.measures[0].bits
        whole, less, exchanged = (
            sum(exact(cut, engine(memory, each), "salt")[0]) for each in (made, without, [*without, *other])
        )
        assert whole / parts == pytest.approx(sum(min(each, limit) for each in totals.values()), rel=2e-3)
        assert whole <= parts * sum(min(each, limit) for each in totals.values())
        assert max(abs(whole - less), abs(whole - exchanged)) <= parts * limit


def test_the_noise_of_that_sum_is_what_its_part_of_the_price_buys(found):
    """300 draws: their variance is off by more than 0.4 of itself with a chance below 1e-5."""
    plan = found().plan(BY_BOTH.format("COUNT(*)"), Limits(search=0.1))
    price = price_plan(plan, 0.5)
    rho = price.totals[0]
    assert price.rho is not None and rho == Fraction(price.rho) * plan.measures[0].share * SUMMED
    drawn = [cut_off_total(plan, price, 0, 40, 10**6 << 16) for _ in range(300)]
    assert {each.limit for each in drawn} == {40}
    wanted = 40**2 / (2 * float(rho))
    assert drawn[0].deviation ** 2 == pytest.approx(wanted)
    mean = sum(each.sum for each in drawn) / 300
    assert sum((each.sum - mean) ** 2 for each in drawn) / 299 == pytest.approx(wanted, rel=0.4)


def test_a_share_of_the_measure_pays_for_the_sum_whatever_is_chosen(found):
    plan = found().plan(BY_BOTH.format("COUNT(*)"), Limits(search=0.1))
    for heavy in (None, {0: 20}):
        lowered = lower_clips(plan, {0: 2}, heavy)
        assert sum(each.share for each in lowered.measures) == plan.measures[0].share * (1 - SUMMED)


# --- what is chosen


def noise_free(sizes: dict[int, int]) -> list[int]:
    counts = [0] * CLASSES
    for size, units in sizes.items():
        counts[1 + math.ceil(2 * math.log2(size))] += units
    return counts


def fit(plan: Plan, counts: list[int], epsilon: float = 1.0) -> Clip:
    price = price_plan(plan, epsilon)
    return fit_clip(plan, price, plan.searched[0], counts, price.searches[plan.searched[0]])


def test_a_lower_limit_is_chosen_and_never_a_higher_one(found):
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    found_ = fit(plan, noise_free({1: 5000, 2: 2000, 4: 900}))
    assert 2 <= found_.clip <= 16 and found_.beyond is not None and found_.beyond < 0.1
    assert fit(plan, noise_free({2**14: 5000})).clip == plan.measures[0].clip == 300
    middle = 2**14 * (1 - math.sqrt(0.5)) / math.log(math.sqrt(2))  # of sizes from 2¹³·√2 to 2¹⁴
    assert fit(plan, noise_free({2**14: 5000})).beyond == pytest.approx(1 - 300 / middle, rel=1e-5)


def test_where_nothing_stands_out_the_limit_stays(found):
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    hidden = price_plan(plan, 1.0).searches[0].noise_error(0.95)
    assert replace(fit(plan, [3, *[-5, 4] * 64]), counts=None) == Clip(0, 300, None, hidden)
    assert clip_notes(plan, [Clip(0, 300, None, 29)])[0] == (
        "This question looked for a lower limit and kept the one it had: at most 300 rows of one user_id count; "
        "noisy counts (± 29) do not tell how much was not counted."
    )
    assert "at most 1 row of one user_id counts instead of 300;" in clip_notes(plan, [Clip(0, 1, 0.5, 29)])[0]


def test_where_little_is_seen_the_limit_is_near_it(found):
    """60 units of one size: four deviations of their noise, which are too few to be sure of."""
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    hidden = price_plan(plan, 1.0).searches[0].noise_error(0.95)
    assert replace(fit(plan, noise_free({16: 62})), counts=None) == Clip(0, 16, None, hidden)


def test_a_lone_class_far_away_is_taken_for_noise(found):
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    counts = noise_free({1: 5000, 2: 2000})
    clip = fit(plan, counts).clip
    counts[100] = 62  # a little more than four standard deviations
    assert fit(plan, counts).clip == clip < 20


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_noise_alone_is_rarely_taken_for_units(norm, found):
    """Expected at most 3 of 3,000; more than 20 has a chance below 1e-10 (Poisson)."""
    plan = found(accounting="zcdp" if norm == "l2" else "pure").plan("SELECT COUNT(*) FROM visits WHERE smoker")
    mechanism = price_plan(plan, 1.0).searches[0]
    drawn = mechanism.noise.draw(3000 * CLASSES).reshape(3000, CLASSES).tolist()
    assert sum(share_beyond(each, mechanism, 1) is not None for each in drawn) <= 20


# --- the plan at other clips


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(change)", "SUM(amount)", "VAR_POP(change)"])
def test_a_lower_clip_has_the_sensitivity_of_a_plan_made_for_it(asker, what, accounting, neighbors):
    maker = asker(accounting=accounting, neighbors=neighbors)
    sql = f"SELECT region, {what} FROM visits GROUP BY region"
    plan = maker.plan(sql, Limits(search=0.1))
    tight = maker.plan(sql, Limits(rows=2, totals={"amount": Fraction(50)}, search=0))
    low = lower_clips(plan, {at: tight.measures[at].clip for at in plan.searched})
    assert [(each.clip, each.sensitivity) for each in low.measures] == [
        (each.clip, each.sensitivity) for each in tight.measures
    ]
    assert sum(each.share for each in low.measures) == sum(each.share for each in plan.measures)


def test_the_integers_at_lower_clips_are_those_of_a_plan_made_for_them(asker, memory):
    sql = "SELECT region, COUNT(*), AVG(change) FROM visits GROUP BY region"
    plan = asker().plan(sql, Limits(search=0.1))
    tight = asker().plan(sql, Limits(rows=2, search=0))
    low = lower_clips(plan, {at: each.clip for at, each in enumerate(tight.measures)})
    table = engine(memory, rows(5))
    assert exact(low, table, "salt") == exact(tight, table, "salt") != exact(plan, table, "salt")


# --- price


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("what", ["COUNT(*)", "AVG(amount)", "COUNT(*), SUM(change), COUNT(DISTINCT user_id)"])
def test_the_search_and_the_measures_cost_what_was_typed(found, accounting, share, what):
    plan = found(accounting=accounting).plan(f"SELECT {what} FROM visits", Limits(search=share))
    assert sum(each.share + each.search for each in plan.measures) == 1
    price = price_plan(plan, 0.7)
    if price.rho is None:
        assert costs.pure_epsilon(price.event) == pytest.approx(0.7, rel=1e-9)
    else:
        cost = costs.zcdp(price.event)
        assert cost is not None and cost.delta == 0
        assert price.rho * (1 - 1e-5) < cost.rho <= price.rho * (1 + 1e-12)
        # whatever clips are found, the mechanisms that run cost no more than their events
        low = price_plan(lower_clips(plan, dict.fromkeys(plan.searched, 1)), 0.7)
        paid = sum(Fraction(each.rho) for each in price.after if isinstance(each, Zcdp))
        assert sum(each.rho for each in low.mechanisms if isinstance(each, DiscreteGaussian)) <= paid


def test_a_statistic_that_is_not_searched_loses_nothing_by_the_others_search(found):
    plan = found().plan("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM visits", Limits(search=0.2))
    shares = {each.kind: (each.share, each.search) for each in plan.measures}
    assert shares == {"rows": (Fraction(2, 5), Fraction(1, 10)), "units": (Fraction(1, 2), 0)}


def test_found_keys_keep_their_part_of_the_price(found):
    plan = found().plan("SELECT note, COUNT(*) FROM visits WHERE smoker GROUP BY note")
    assert plan.selection is not None and plan.searched == (0,)
    assert plan.selection.share + sum(each.share + each.search for each in plan.measures) == 1
    cost = costs.zcdp(price_plan(plan, 1.0).event)
    assert cost is not None and cost.rho <= (price_plan(plan, 1.0).rho or 0) * (1 + 1e-12)


# --- when


@pytest.mark.parametrize(
    ("sql", "searched"),
    [
        ("SELECT COUNT(*) FROM visits", ()),
        ("SELECT SUM(amount) FROM visits", ()),
        ("SELECT AVG(amount) FROM visits", ()),
        ("SELECT COUNT(amount) FROM visits", ()),
        ("SELECT region, COUNT(*) FROM visits GROUP BY region", ()),  # this norm was found at `protect`
        ("SELECT COUNT(DISTINCT user_id) FROM visits WHERE smoker", ()),
        ("SELECT COUNT(*) FROM visits WHERE smoker", ("rows",)),
        ("SELECT COUNT(*) FILTER (WHERE smoker) FROM visits", ("rows",)),
        ("SELECT AVG(amount) FROM visits WHERE smoker", ("rows", "sum")),
        ("SELECT AVG(amount) FILTER (WHERE smoker) FROM visits", ("rows", "sum")),
        ("SELECT smoker, COUNT(*) FROM visits GROUP BY smoker", ("rows",)),
        ("SELECT region, smoker, COUNT(*) FROM visits GROUP BY ALL", ("rows",)),
        ("SELECT region, AVG(amount) FROM visits GROUP BY region", ("sum",)),
        ("SELECT VAR_POP(amount) FROM visits", ("square",)),
    ],
)
def test_limits_are_found_by_default_where_those_of_the_table_are_too_wide(found, sql, searched):
    plan = found().plan(sql)
    assert tuple(plan.measures[at].kind for at in plan.searched) == searched
    assert sum(each.search for each in plan.measures) == (Fraction(1, 10) if searched else 0)
    assert found().plan(sql, Limits(search=0)).searched == ()


def test_in_l1_groups_shorten_nothing(found):
    assert found(accounting="pure").plan("SELECT region, SUM(amount) FROM visits GROUP BY 1").searched == ()


def test_limits_that_somebody_chose_are_left_alone_unless_asked(found, asker):
    sql = "SELECT SUM(amount) FROM visits WHERE smoker"
    assert asker().plan(sql).searched == ()
    assert found().plan(sql, Limits(rows=5)).searched == ()
    assert found().plan(sql, Limits(totals={"amount": Fraction(5)})).searched == ()
    assert found(contribution="totals = { amount = 50 }").plan(sql).searched == ()
    assert asker().plan(sql, Limits(search=0.1)).searched == (0,)
    assert found().plan(sql, Limits(rows=5, search=0.1)).searched == (0,)


@pytest.mark.parametrize("share", [-0.1, 0.51, 1, float("nan"), True, "0.1"])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(InputError):
        Limits(search=share)


def test_a_share_is_part_of_what_was_asked(found):
    sql = "SELECT COUNT(*) FROM visits WHERE smoker"
    keys = {found().plan(sql, Limits(search=each)).key(1) for each in (0, None, 0.1, 0.2, Fraction(1, 10))}
    assert len(keys) == 3


# --- the answer


@pytest.mark.parametrize(
    "options",
    [{}, {"neighbors": "substitute"}, {"accounting": "pure"}, {"period": MONTHS}],
    ids=["zcdp", "substitute", "pure", "periods"],
)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS x FROM visits WHERE smoker",
        "SELECT SUM(amount) AS x FROM visits WHERE smoker",
        "SELECT region, AVG(amount) AS x FROM visits WHERE smoker GROUP BY region",
    ],
)
def test_a_stored_answer_tells_the_limits_that_were_found(found, memory, options, sql):
    plan = found(**options).plan(sql)
    made = light(9, 3000)
    content = measure_plan(plan, price_plan(plan, 5.0), engine(memory, made), "salt", 60.0)
    answer = Answer.read(plan, content, 0.95)
    assert [each.measure for each in answer.clips] == list(plan.searched)
    assert all(1 <= each.clip < plan.measures[each.measure].clip for each in answer.clips)
    assert all("found its own limit" in each for each in answer.notes[len(plan.notes) :])
    assert [each["share"] for each in answer.limits] == [float(plan.measures[at].search) for at in plan.searched]
    smokers = [row for row in made if row["smoker"]]
    column = answer.table().columns.index("x")
    values = [row[column] for row in answer.table().rows]
    total = sum(row["amount"] for row in smokers)
    truth = {"COUNT": len(smokers), "SUM": total, "AVG": total / len(smokers)}
    (expected,) = (value for name, value in truth.items() if name in sql)
    # the noise is below 1% here (3% of a group's average under substitution); the rest is what clipping takes
    assert all(abs(value / expected - 1) < 0.3 for value in values)
    # the noise is made for the limit that was found
    stored = [Fraction(next(iter(each["law"].values()))) for each in json.loads(content)["measures"]]
    asked = [each.noise for each in price_plan(plan, 5.0).mechanisms]
    at = plan.searched[-1]
    assert stored[at] < (asked[at].variance if hasattr(asked[at], "variance") else asked[at].scale)


def test_keys_are_found_first_and_then_limits(found, memory):
    plan = found().plan("SELECT note, COUNT(*) FROM visits WHERE smoker GROUP BY note")
    content = measure_plan(plan, price_plan(plan, 20.0), engine(memory, rows(9, 3000)), "salt", 60.0)
    answer = Answer.read(plan, content, 0.95)
    assert [row[0] for row in answer.table().rows] == ["a", "b", "c"]
    assert answer.clips[0].clip < 300


def test_an_answer_without_its_limits_is_not_read(found, memory):
    plan = found().plan("SELECT COUNT(*) FROM visits WHERE smoker")
    content = json.loads(measure_plan(plan, price_plan(plan, 5.0), engine(memory, rows(9)), "salt", 60.0))
    del content["limits"]
    with pytest.raises(LedgerCorruptError):
        Answer.read(plan, json.dumps(content).encode(), 0.95)


def test_limits_are_told_in_the_units_of_the_answer(found):
    plan = found().plan("SELECT region, AVG(amount), VAR_POP(age) FROM visits WHERE smoker GROUP BY region")
    clips = [Clip(at, 1000, 0.0123, 29) for at in plan.searched]
    told = {each["measure"]: each for each in report_clips(plan, clips)}
    assert (told["sum of amount"]["limit"], told["sum of amount"]["of"]) == (10.0, 9000.0)
    assert told["sum of squares of age less 54"]["limit"] == 1000
    assert all(each["beyond"] == 0.0123 for each in told.values())
    said = " ".join(clip_notes(plan, clips))
    over = "(over several groups: √(a² + b² + …))"
    assert f"own limit: the sum of amount of one user_id counts up to 10 instead of 9,000 {over}; about 1.2%" in said
    assert "about 1.2% of it was not counted, as far as noisy counts (± 29) tell." in said
    large = " ".join(clip_notes(plan, [replace(each, clip=123_456_789) for each in clips]))
    assert "counts up to 1,234,570 instead" in large and "e+" not in large
