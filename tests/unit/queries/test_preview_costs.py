"""What keeps previews fast: few looks at the ledger, nothing worked out twice, and no file opened for nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests import typed

from dalenius.ledger.ledger import Ledger
from dalenius.measuring import public
from dalenius.measuring.engines.sources import public_lookup
from dalenius.measuring.estimates import total
from dalenius.measuring.plan import Limits
from dalenius.measuring.statistics import family
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.rules import plan_question

LOOKS = 9  # what is open, versions, closed tables, own answers to it, to others and to workloads, what is left


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return typed.protected(tmp_path_factory.mktemp("costs"))


def test_a_preview_looks_at_the_ledger_a_few_times_only(shop, monkeypatch):
    looks, view = [], Ledger.view

    def counted(self):
        looks.append(self)
        return view(self)

    monkeypatch.setattr(Ledger, "view", counted)
    shop.ana.preview("SELECT region, AVG(age) FROM people GROUP BY region")
    assert len(looks) <= LOOKS


def test_a_question_that_cannot_speak_of_a_public_table_opens_none(shop, monkeypatch):
    opened = []

    def counted(found):
        opened.append(found)
        return public_lookup(found)

    monkeypatch.setattr(public, "_KEPT", type(public._KEPT)())
    monkeypatch.setattr(public, "public_lookup", counted)
    shop.ana.preview("SELECT region, AVG(age) AS age FROM people GROUP BY region")
    assert not opened
    # Here it matters whether a public table has a column of that name.
    shop.ana.preview("SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) FROM orders GROUP BY m")
    assert len(opened) == 1


def test_groups_of_which_the_same_was_released_are_worked_out_once(shop, monkeypatch):
    asked = []

    def counted(part, *rest, **more):
        asked.append(part.value)
        return total(part, *rest, **more)

    monkeypatch.setattr(family, "total", counted)
    found = shop.ana.preview("SELECT day, COUNT(*) FROM orders GROUP BY day", epsilon=1.0)
    assert found.groups == 731 and len(asked) == 1
    plan = shop_plan(shop, "SELECT region, COUNT(*) FROM people GROUP BY region")
    (statistic,) = plan.statistics
    law, (aggregate,) = DiscreteGaussianLaw(Fraction(100)), plan.answers
    one = 1 << statistic.measures[0].bits
    read = statistic.family.read(statistic, [(law, [7 * one, 9 * one, 7 * one, 8 * one])], 4, 0.95)
    asked.clear()
    assert [each.value for each in read.estimates(aggregate)] == [7, 9, 7, 8]
    assert asked == [7 * one, 9 * one, 8 * one]


def test_what_is_kept_of_cells_is_never_taken_for_that_of_others(shop):
    plan = shop_plan(shop, "SELECT region, COUNT(*) FROM people GROUP BY region")
    before = plan.canonical()
    fewer = replace(plan, cells=plan.cells[:2])
    assert fewer.canonical() != before and plan.canonical() == before
    # equal cells that are written otherwise are other cells
    ones, twice = replace(plan, cells=((1,),)), replace(plan, cells=((1.0,),))
    assert ones.cells == twice.cells and ones.canonical() != twice.canonical()


def test_what_is_kept_of_a_policy_is_never_taken_for_that_of_another(shop):
    policy = shop.curator.registry.current()["people"].policy
    assert policy.meaning == policy.meaning == replace(policy, analysts={}).meaning
    assert replace(policy, contribution=replace(policy.contribution, rows=2)).meaning != policy.meaning


def shop_plan(shop, sql):
    from dalenius.queries.planning import OpenTables

    return plan_question(sql, OpenTables.of(shop.ana._asker).tables, Limits())
