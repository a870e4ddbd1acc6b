"""Limits are found from noisy counts of units by size."""

from __future__ import annotations

import pytest

from dalenius._protecting import budget_of
from dalenius.accounting import costs
from dalenius.ledger.budgets import Accounting
from dalenius.queries.choosing import CLASSES
from dalenius.queries.finding import RHO, Search, quantities
from dalenius.queries.plan import Found, Table
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
    assert Search.of(table("rows = 10")) is None


def test_a_declared_total_is_not_searched():
    kinds = [(each.kind, each.column) for each in quantities(table("totals = { age = 500 }").policy, Accounting.ZCDP)]
    assert ("total", "age") not in kinds


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize(("budget", "epsilon"), [("delta = 1e-6", 3.0), ("delta = 1e-6", 0.2)])
def test_the_search_costs_what_it_says_and_a_small_part(budget: str, epsilon: float, neighbors: str):
    search = Search.of(table(budget=budget, epsilon=epsilon, neighbors=neighbors))
    assert search is not None and search.rho is not None
    cost = costs.zcdp(search.event)
    assert cost is not None
    assert cost.rho == pytest.approx(search.rho)
    assert search.rho <= RHO * (1 + 1e-9)
    assert (search.charge["part"] or 1) <= 0.05 * (1 + 1e-6)
    parts = [mechanism.rho for mechanism in mechanisms(search)]
    assert sum(parts) == pytest.approx(search.rho)


def test_under_pure_accounting_the_parts_add_up_to_epsilon():
    search = Search.of(table(budget='accounting = "pure"', epsilon=4.0))
    assert search is not None
    assert search.epsilon == pytest.approx(0.1)
    assert sum(float(each.sensitivity / each.scale) for each in mechanisms(search)) == pytest.approx(0.1)


def mechanisms(search: Search):
    shares = search._shares()
    histograms = [search._mechanism(1, share, CLASSES) for share in shares[:-2]]
    return [*histograms, search._mechanism(1, shares[-2]), search._mechanism(50, shares[-1])]


def test_found_limits_survive_the_ledger():
    search = Search.of(table())
    assert search is not None
    found = Found.from_dict({"rows": 5, "totals": {"age": "21/2"}, "norms": {"region": 4}, "units": 9, "row_count": 20})
    assert Found.from_dict(found.to_dict()) == found
