"""What the report tells agrees with the ledger."""

from __future__ import annotations

import math
import shutil

import pytest

from dalenius.accounting.event_json import KINDS
from dalenius.accounting.events import Composed, DiscreteGaussian, Repeated, Zcdp
from dalenius.app.report import report
from dalenius.app.report.words import THEOREMS
from dalenius.ledger import Budget, Ledger, Request, verify
from dalenius.ledger.budgets import Accounting


def test_its_numbers_are_those_of_the_ledger(home):
    ledger, found = Ledger.open(home), report(Ledger.open(home))
    assert found.verification.holds and found.verification.head == ledger.head.hash.hex() and not found.unreadable
    assert [each.dataset for each in found.promises] == ledger.datasets()
    seen = 0
    for each in found.spending:
        if each.epoch != ledger.epoch(each.dataset) or each.cap is None:
            continue
        balance = ledger.balance(each.dataset, each.analyst, each.period)
        gone = balance.spent_guarantee
        assert (each.cap, each.questions, each.epsilon, each.delta) == (
            balance.epsilon, balance.charges, gone.epsilon, gone.delta,
        )  # fmt: skip
        assert each.left == balance.remaining_epsilon
        groups = balance.to_dict()["groups"] if each.role == "everybody" and balance.charges else {}
        assert {str(g.size): {"epsilon": g.epsilon, "delta": g.delta} for g in each.groups} == groups
        seen += 1
    assert seen == sum(len(ledger.periods(d)) * (1 + len(ledger.allotments(d))) for d in ledger.datasets())
    (ended,) = [each for each in found.spending if each.analyst == "gone"]
    assert ended.cap is None and ended.left is None and ended.questions == 1 and ended.epsilon > 0.09
    for promise in found.promises:
        if promise.line:
            assert promise.line[-1][1] == ledger.balance(promise.dataset).spent_guarantee.epsilon


def test_it_tells_policies_data_epochs_failures_actions_and_alarms(home):
    found = report(Ledger.open(home))
    first, changed = [each for each in found.policies if each.table == "visits"]
    assert first.first and not first.changes and not changed.first
    assert {each.place for each in changed.changes} == {"budget.epsilon", "columns.age.bounds"}
    assert "3.0 → 4.0" in [each.what for each in changed.changes] and changed.reason.startswith("the board")
    assert [(each.table, each.data_version, each.epoch) for each in found.data][2:] == [
        ("visits", 2, 0),
        ("orders", 2, 1),
    ]
    assert [(each.dataset, each.epoch, each.reason) for each in found.epochs] == [("orders", 1, "a new wave")]
    (before,) = [e for e in found.spending if (e.dataset, e.epoch, e.role) == ("orders", 0, "everybody")]
    assert before.questions == 1 and before.left is None and 0.09 < before.epsilon <= 0.1 + 1e-9
    assert found.questions.failed == 1 and found.questions.shared == 1 and found.questions.open == 0
    assert [(each.dataset, each.analyst, each.epsilon) for each in found.failures] == [("visits", "ana", 0.05)]
    assert [each.charge for each in found.alarms] == [9] and len(found.publications) == 1
    told = [each.what for each in found.actions]
    assert any("is revoked" in each and "of analyst ana" in each for each in told)
    assert any("from ε = 3 to 4" in each for each in told) and "gone may spend no more of visits" in told
    used = {each.mechanism: each.charges for each in found.mechanisms}
    assert used["laplace"] == 2 and used["discrete-gaussian"] >= 5 and set(used) <= set(THEOREMS)


def test_every_mechanism_that_can_be_charged_has_its_theorem():
    assert set(THEOREMS) == set(KINDS) - {"composed", "repeated", "parallel"}


def test_repeated_and_composed_mechanisms_are_counted(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("d", Budget(1.0, 1e-6))
    noise = DiscreteGaussian(10**9, 1, 1)
    event = Composed((Repeated(Composed((noise, Zcdp(1e-9))), 3), noise))
    ledger.ask(Request("d", "", "q", 0.5, event), lambda _: b"1")
    used = {each.mechanism: (each.charges, each.times) for each in report(ledger).mechanisms}
    assert used == {"discrete-gaussian": (1, 4), "zcdp": (1, 3)}


def test_what_is_written_after_the_verification_is_not_told(home, monkeypatch, tmp_path):
    shutil.copytree(home, tmp_path / "home")
    ledger = Ledger.open(tmp_path / "home")
    before = ledger.balance("visits")

    def verified(given):
        found = verify(given)
        given.ask(Request("visits", "ana", "later", 0.05, Zcdp(1e-9)), lambda _: b"1")
        return found

    monkeypatch.setattr("dalenius.app.report.gathering.verify", verified)
    found = report(ledger)
    assert ledger.balance("visits").charges == before.charges + 1
    (told,) = found.spent("visits")
    assert told.questions == before.charges and found.verification.entries == ledger.head.count - 2


def spent(tmp_path, budget, *requests):
    """The promise, and the spending of everybody, of a data set in which these were asked."""
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("d", budget)
    for place, (epsilon, event, delta) in enumerate(requests):
        ledger.ask(Request("d", "", str(place), epsilon, event, delta), lambda _: b"1")
    found = report(ledger)
    return found.promises[0], found.spent("d")[0]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (3.0, 1e-6), (2.0, 0.0)])
def test_groups_are_promised_what_so_many_neighbours_in_a_row_allow(tmp_path, epsilon, delta):
    """P(S) ≤ e^ε P′(S) + δ, k times: e^kε, and δ(1 + e^ε + … + e^(k−1)ε) on top; from 1 on, nothing."""
    budget = Budget(epsilon, delta, accounting=Accounting.ZCDP if delta else Accounting.PURE)
    promise, _ = spent(tmp_path, budget)
    told = {each.size: (each.epsilon, each.delta) for each in promise.groups}
    for size in (2, 5, 10):
        top = sum(delta * math.exp(step * epsilon) for step in range(size))
        assert (size in told) == (top < 1)
        if size in told:
            assert told[size] == (pytest.approx(size * epsilon), pytest.approx(top))


def test_groups_of_what_was_spent_follow_rho_until_a_delta_was_spent_beside_it(tmp_path):
    budget, quiet = Budget(3.0, 1e-6), Zcdp(1e-9)
    _, plain = spent(tmp_path / "plain", budget, (0.5, quiet, 0.0), (0.5, quiet, 0.0))
    for each in plain.groups:
        rho = each.size**2 * plain.rho
        # between what a Gaussian of that ρ is known to lose (its mean) and the simple bound of Bun & Steinke
        assert rho < each.epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / each.delta)) and each.delta == 5e-7
    assert [each.size for each in plain.groups] == [2, 5, 10] and plain.groups[0].epsilon > 2 * plain.epsilon
    _, keyed = spent(tmp_path / "keyed", budget, (0.5, Zcdp(1e-9, 1e-8), 1e-8))
    assert keyed.delta == pytest.approx(5e-7 + 1e-8)
    for each in keyed.groups:
        top = sum(keyed.delta * math.exp(step * keyed.epsilon) for step in range(each.size))
        assert (each.epsilon, each.delta) == (pytest.approx(each.size * keyed.epsilon), pytest.approx(top))
