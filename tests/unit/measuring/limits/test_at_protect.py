"""Limits are found from noisy counts of units by size."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.accounting import costs
from dalenius.errors import NotAllowedError
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.limits.at_protect import RHO, ProtectSearch, Quantity, identity, known_limits, quantities
from dalenius.measuring.limits.choosing import ChosenLimit
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.plan import Found, Table
from dalenius.owner.protect import budget_of
from dalenius.tables.reading import read_text

POLICY = """
[table]
name = "visits"
source = "/nowhere/visits.parquet"
unit = "person"
neighbors = "{neighbors}"
[budget]
epsilon = {epsilon}
{budget}
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south"]
[columns.note]
type = "text"
[contribution]
{contribution}
"""


def table(contribution: str = "", budget: str = "delta = 1e-6", epsilon: float = 3.0, neighbors: str = "add-remove"):
    policy = read_text(POLICY.format(contribution=contribution, budget=budget, epsilon=epsilon, neighbors=neighbors))
    found = budget_of(policy)
    assert found is not None
    return Table(policy, found)


def test_what_is_not_declared_is_searched():
    kinds = [(each.kind, each.column) for each in quantities(table().policy, Accounting.ZCDP)]
    assert kinds == [("rows", ""), ("total", "age"), ("norm", "age"), ("norm", "region")]


def test_an_owner_who_declares_rows_is_charged_for_nothing():
    assert quantities(table("rows = 10").policy, Accounting.ZCDP) == ()
    assert ProtectSearch.of(table("rows = 10")) is None


def test_a_declared_total_is_not_searched():
    kinds = [(each.kind, each.column) for each in quantities(table("totals = { age = 500 }").policy, Accounting.ZCDP)]
    assert ("total", "age") not in kinds


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize(("budget", "epsilon"), [("delta = 1e-6", 3.0), ("delta = 1e-6", 0.2)])
def test_the_search_costs_what_it_says_and_a_small_part(budget: str, epsilon: float, neighbors: str):
    search = ProtectSearch.of(table(budget=budget, epsilon=epsilon, neighbors=neighbors))
    assert search is not None and search.rho is not None
    cost = costs.zcdp(search.event)
    assert cost is not None
    assert cost.rho == pytest.approx(search.rho)
    assert search.rho <= RHO * (1 + 1e-9)
    assert (search.charge["part"] or 1) <= 0.05 * (1 + 1e-6)
    parts = [mechanism.rho for mechanism in mechanisms(search)]
    assert sum(parts) == pytest.approx(search.rho)


def test_under_pure_accounting_the_parts_add_up_to_epsilon():
    search = ProtectSearch.of(table(budget='accounting = "pure"', epsilon=4.0))
    assert search is not None
    assert search.epsilon == pytest.approx(0.1)
    assert sum(float(each.sensitivity / each.scale) for each in mechanisms(search)) == pytest.approx(0.1)


def mechanisms(search: ProtectSearch):
    shares = search._shares()
    histograms = [search._mechanism(1, share, CLASSES) for share in shares[:-2]]
    return [*histograms, search._mechanism(1, shares[-2]), search._mechanism(50, shares[-1])]


def test_found_limits_survive_the_ledger():
    search = ProtectSearch.of(table())
    assert search is not None
    found = Found.from_dict({"rows": 5, "totals": {"age": "21/2"}, "norms": {"region": 4}, "units": 9, "row_count": 20})
    assert Found.from_dict(found.to_dict()) == found
    assert found.clipped == {}  # as old records are
    told = Found(5, clipped={"rows": 0.003})
    assert Found.from_dict(told.to_dict()) == told


def test_under_pure_accounting_norms_and_hidden_keys_are_not_paid_for():
    search = ProtectSearch.of(table(budget='accounting = "pure"'))
    assert search is not None
    assert [each.kind for each in search.quantities] == ["rows", "total"]


def test_stored_limits_are_put_together_quantity_by_quantity():
    search = ProtectSearch.of(table())
    assert search is not None
    wide = table("totals = { age = 500 }")
    part = Found(5, {}, {"region": 4, "age": 5}, 900, 4000, clipped={"rows": 0.01})
    assert known_limits(search, [(wide, part)]) is None  # nobody has looked at the total of age
    whole = Found(6, {"age": Fraction(300)}, {"region": 3, "age": 6}, 901, 4100, clipped={"total age": 0.02})
    found = known_limits(search, [(table(), whole), (wide, part)])  # the newest of each
    assert found == Found(
        5, {"age": Fraction(300)}, {"region": 4, "age": 5}, 900, 4000, {}, {"rows": 0.01, "total age": 0.02}
    )


def test_what_decides_the_sizes_is_in_a_quantity_s_identity():
    total = Quantity("total", "age")
    assert identity(table(), total) == identity(table("groups = 4", epsilon=9.0), total)
    policy = read_text(table().policy.text.replace("[18, 90]", "[18, 99]"))
    other = Table(policy, table().budget)
    assert identity(other, total) != identity(table(), total)
    assert identity(other, Quantity("rows")) == identity(table(), Quantity("rows"))


def test_too_many_periods_are_refused_with_what_the_owner_can_do():
    text = POLICY.format(
        contribution="",
        budget='delta = 1e-6\nperiod = { column = "when", every = "day" }',
        epsilon=3,
        neighbors="add-remove",
    )
    text += '[columns.when]\ntype = "date"\nbounds = ["2000-01-01", "2025-12-31"]\n'
    policy = read_text(text)
    budget = budget_of(policy)
    assert budget is not None and policy.budget is not None
    with pytest.raises(NotAllowedError, match=r"search for limits.*\[contribution\] rows"):
        ProtectSearch.of(Table(policy, budget, policy.budget.period))
    declared = read_text(text.replace("[contribution]\n", "[contribution]\nrows = 3\n"))
    assert ProtectSearch.of(Table(declared, budget, policy.budget.period)) is None


def test_the_noise_of_distinct_keys_grows_with_the_root():
    search = ProtectSearch.of(table())
    assert search is not None
    rows, distinct = search._noise(Quantity("rows")), search._noise(Quantity("distinct", "region"))
    assert rows(100) == pytest.approx(100 * rows(1))
    assert distinct(100) == pytest.approx(10 * distinct(1))


def test_a_limit_that_the_noise_hides_is_what_the_rows_allow():
    search = ProtectSearch.of(table())
    assert search is not None
    seen = {each: ChosenLimit(12, 0.01) for each in search.quantities}
    hidden = {each: ChosenLimit(1, None) for each in search.quantities} | {Quantity("rows"): ChosenLimit(12, 0.01)}
    assert search._written(seen, {}, 5, 9)["totals"] == {"age": "12"}
    found = search._written(hidden, {}, 5, 9)
    assert found["totals"] == {"age": str(12 * 91)}  # a unit of 12 rows, none above 90
    assert set(found["norms"].values()) == {12} and found["clipped"] == {"rows": 0.01}
