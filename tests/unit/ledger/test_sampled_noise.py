"""Training in the ledger: each total pays at its own order, forged fields are seen, and old rules stay."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest

from dalenius.accounting.events import Approx, Composed, DiscreteGaussian, PoissonSampled, SampledGaussian, Zcdp
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.orders import loss, tight
from dalenius.accounting.sampled_discrete import calibrate_sampled, sampling_rate
from dalenius.app.report import report
from dalenius.app.views.balances import balances_json, totals, totals_of
from dalenius.app.views.burn_down import LineName, points
from dalenius.app.views.history import details
from dalenius.errors import BudgetError, InputError, LedgerCorruptError
from dalenius.ledger import Accounting, Balance, Budget, Ledger, Request, verify
from dalenius.ledger.budgets import covers
from dalenius.ledger.chain import canonical

BUDGET = Budget(3.0, 1e-6, unit="student_id")
RATE = sampling_rate(0.01)


def training(epsilon=1.0, cap=2.0, *, budget=BUDGET, steps=1000, parts=(), delta=1e-9):
    """An event that costs at most ε at the data set's order, that of an allotment, and its own."""
    orders = budget.sampling_orders(epsilon, cap)
    rho = budget.filter().price(epsilon).rho - sum(2 * each.rho for each in parts)
    variance = calibrate_sampled(RATE, steps, rho, orders)
    event = SampledGaussian(RATE, variance * 2**40, 2**40, steps, 10, delta)
    return Composed((event, *parts)) if parts else event


def cost(event, order):
    """What it costs there, in units of ρ."""
    found = loss(event, order)
    assert found is not None
    return found


@pytest.fixture
def train(ledger):
    """`train(key, epsilon, analyst)`: a model, trained and stored."""

    def trained(key="model", epsilon=1.0, analyst="ana", event=None, **more):
        event = training(epsilon) if event is None else event
        asked = Request("students", analyst, key, epsilon, event, 1e-9, kind="model", delta_chosen=True, **more)
        return ledger.ask(asked, lambda claim: b"weights")

    return trained


def charges(ledger):
    return [entry.data for entry in ledger.entries() if entry.kind == "charge"]


def test_each_total_pays_what_the_training_costs_at_its_own_order(ledger, train):
    train()
    [charge] = charges(ledger)
    event = training()
    assert charge["units"][0] == str(_units(BUDGET.filter().price(1.0).rho)) and charge["epsilon"] == 1.0
    for analyst, cap in {"": 3.0, "ana": 2.0}.items():
        order = tight(cap, BUDGET.conversion_delta).order
        assert charge["losses"][analyst] == {"order": str(order), "units": str(_units(cost(event, order)))}
        spent = ledger.balance("students", analyst).spent
        assert spent.rho == pytest.approx(float(cost(event, order)), rel=1e-12) and spent.delta == 1e-9
    assert int(charge["losses"][""]["units"]) < int(charge["losses"]["ana"]["units"]) < int(charge["units"][0])
    assert verify(ledger).charges == 1


def _units(value):
    return -(-Fraction(value) * 2**128 // 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_epsilon_of_a_training_is_what_it_costs_within_three_per_cent(ledger, train, epsilon):
    """Ten thousand steps at a rate of 0.01, in a budget of 3, by its owner."""
    event = training(epsilon, 3.0, steps=10_000)
    train(epsilon=epsilon, analyst="", event=event)
    price = BUDGET.filter().price(epsilon).rho
    assert 0.97 * price < ledger.balance("students").spent.rho <= price
    assert 0.97 * epsilon < ledger.balance("students").spent_guarantee.epsilon <= epsilon


def test_the_same_again_is_free_and_another_analyst_pays_in_full(ledger, train):
    first = train(shareable=True)
    again = train(shareable=True)
    assert again.free and again.content == first.content and len(charges(ledger)) == 1
    train(analyst="bob", shareable=True)
    data = charges(ledger)
    assert (
        len(data) == 2
        and "shares" not in data[1]
        and data[1]["losses"]
        == {
            "": data[0]["losses"][""],
            "bob": data[0]["losses"]["ana"],
        }
    )
    assert ledger.balance("students").charges == 2


def test_noise_that_costs_more_than_was_typed_is_refused_at_any_order_that_pays(ledger, train):
    short = training(1.0)
    for more in (replace(short, steps=1001), replace(short, variance=short.variance * Fraction(999, 1000))):
        with pytest.raises(InputError, match="costs more"):
            train(event=more)
    with pytest.raises(InputError, match="costs more"):
        train(event=replace(short, delta=2e-9))
    order = tight(3.0, BUDGET.conversion_delta).order  # enough for the data set, not for ε = 1 alone
    rho = BUDGET.filter().price(1.0).rho
    large = SampledGaussian(RATE, calibrate_sampled(RATE, 1000, rho, [order]), steps=1000)
    assert cost(large, order) <= Fraction(rho)
    with pytest.raises(InputError, match="costs more"):
        train(event=large)
    with pytest.raises(InputError, match="costs more"):
        train(event=Composed((short, Zcdp(1e-6))))
    assert not charges(ledger) and not covers(BUDGET.filter().price(1.0), short)


def test_noise_for_its_own_order_alone_is_refused_where_a_total_pays_at_a_worse_one(ledger, train):
    """Much noise costs about the same at all orders, but between whole ones, low down, a little more is counted."""
    rho, own = BUDGET.filter().price(0.1).rho, BUDGET.sampling_orders(0.1)[:1]
    alone = SampledGaussian(RATE, calibrate_sampled(RATE, 10_000, rho, own), steps=10_000)
    order = tight(3.0, BUDGET.conversion_delta).order
    assert cost(alone, own[0]) <= Fraction(rho) < cost(alone, order)
    with pytest.raises(InputError, match="costs more"):
        train(epsilon=0.1, event=alone)
    train(epsilon=0.1, event=training(0.1, steps=10_000))
    verify(ledger)


def test_parts_that_have_a_rho_are_charged_with_it(ledger, train):
    count = Zcdp(1e-3)
    train(event=training(1.0, parts=(count,)))
    [charge] = charges(ledger)
    order = tight(3.0, BUDGET.conversion_delta).order
    assert Fraction(charge["losses"][""]["order"]) == order
    assert int(charge["losses"][""]["units"]) == _units(cost(training(1.0, parts=(count,)), order)) > _units(1e-3)
    train("other", event=Composed((training(0.9), DiscreteGaussian(10**6, 7, 3))))
    verify(ledger)


def test_parts_without_a_divergence_are_refused(ledger, train):
    with pytest.raises(InputError):
        train(event=Composed((training(0.9), PoissonSampled(0.1, Zcdp(1e-9)))))


def test_a_full_budget_trains_no_more_and_says_what_would_fit(ledger, train):
    for number in range(7):
        train(f"m{number}", 1.0, "", event=training(1.0, 3.0))
    with pytest.raises(BudgetError) as refusal:
        train("m7", 1.5, "", event=training(1.5, 3.0))
    assert refusal.value.fits is not None
    fits = refusal.value.fits.epsilon
    train("m7", fits, "", event=training(fits, 3.0))
    assert ledger.balance("students").spent_guarantee.epsilon <= 3.0
    verify(ledger)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(3.0, accounting=Accounting.PURE), "pure"),
        (Budget(3.0, 1e-6, neighbors=Neighbors.SUBSTITUTE), "add-remove"),
    ],
)
def test_other_budgets_are_offered_output(ledger, budget, words):
    ledger.set_budget("other", budget)
    delta = 0.0 if budget.delta == 0 else 1e-9
    with pytest.raises(InputError, match=words) as refusal:
        budget.sampling_orders(1.0, 2.0)
    assert '"output"' in refusal.value.fix
    with pytest.raises(InputError):
        ledger.ask(Request("other", "", "m", 1.0, training(), delta), lambda claim: pytest.fail("looked"))
    assert not charges(ledger)


# --- caps that are changed


def test_a_changed_cap_counts_the_training_at_its_own_order(ledger, train):
    train(), train("q", 0.5, event=Zcdp(BUDGET.filter().price(0.5).rho))
    own: dict[float, float] = {}
    event = training()
    for cap in (2.0, 5.0, 1.2, 2.0):
        ledger.set_allotment("students", "ana", cap)
        order = tight(cap, BUDGET.conversion_delta).order
        spent = ledger.balance("students", "ana").spent.rho
        assert spent == pytest.approx(float(cost(event, order)) + BUDGET.filter().price(0.5).rho, rel=1e-12)
        own.setdefault(cap, spent)
        assert own[cap] == spent
        verify(ledger)
    assert own[5.0] < own[2.0] < own[1.2]
    left = ledger.balance("students").remaining_epsilon
    larger = replace(BUDGET, epsilon=6.0)
    ledger.set_budget("students", larger)
    assert ledger.balance("students").remaining_epsilon > left
    ledger.end_allotment("students", "ana")
    ledger.set_allotment("students", "ana", 2.0)
    assert ledger.balance("students", "ana").spent.rho == own[2.0]
    train("after", 0.3, event=training(0.3, 2.0, budget=larger))
    verify(ledger)


def test_new_people_start_afresh_and_periods_pay_each(ledger, train):
    train()
    ledger.record_all(
        [("epoch", {"dataset": "students", "epoch": 1, "reason": "a wave of new people"})],
        since=0,
        overtaken=lambda _: False,
    )
    assert ledger.balance("students").spent.rho == 0 and ledger.balance("students").spent_guarantee.epsilon == 0
    ledger.set_budget("visits", Budget(3.0, 1e-6, period="month"))
    event = training(1.0, 3.0)
    ledger.ask(Request("visits", "", "m", 1.0, event, 1e-9, periods=("2026-01", "2026-02")), lambda claim: b"w")
    for period in ("2026-01", "2026-02"):
        assert ledger.balance("visits", "", period).spent.rho > 0.02
    assert ledger.balance("visits", "", "2026-03").spent.rho == 0
    verify(ledger)


def test_who_takes_over_a_training_is_told_the_noise_that_was_charged(ledger, monkeypatch):
    """Planned anew under a raised cap it would have less noise than was paid for."""
    event = training(0.1, 2.0, steps=10_000)
    asked = Request("students", "ana", "m", 0.1, event, 1e-9, delta_chosen=True)
    first = ledger.charge(asked)
    assert first.sampled == event
    larger = replace(BUDGET, epsilon=40.0)
    ledger.set_budget("students", larger)
    ledger.set_allotment("students", "ana", 30.0)
    planned = training(0.1, 30.0, budget=larger, steps=10_000)
    assert planned != event
    monkeypatch.setattr("dalenius.ledger.questions.is_dead", lambda holder: True)
    again = ledger.charge(replace(asked, event=planned))
    assert (again.number, again.fence, again.sampled) == (first.number, 2, event)
    assert ledger.charge(Request("students", "ana", "q", 0.1, Zcdp(1e-9))).sampled is None
    ledger.answer(again, b"weights")
    assert ledger.ask(asked, lambda claim: pytest.fail("trained again")).free
    verify(ledger)


# --- what others read


def test_another_process_and_a_checkpoint_know_what_was_sampled(ledger, train, monkeypatch):
    from dalenius.ledger import proof

    monkeypatch.setattr(proof, "_WORTH", 1)
    train(), train("second", analyst="bob")
    expected = [ledger.balance("students", who) for who in ("", "ana", "bob")]
    for checkpoint in (False, True):
        if not checkpoint:
            (ledger.home / proof.CHECKPOINT).unlink(missing_ok=True)
        opened = Ledger.open(ledger.home)
        assert [opened.balance("students", who) for who in ("", "ana", "bob")] == expected
        assert (ledger.home / proof.CHECKPOINT).exists()
        spent = opened.spent("students", "", "")
        assert spent == ledger.spent("students", "", "") and len(spent[1]) == 2 and spent[0][0] == 0


def test_views_reports_and_remote_balances_say_the_same(ledger, train):
    (
        train(),
        train("q", 0.5, "bob", event=Zcdp(BUDGET.filter().price(0.5).rho)),
        train("again", 0.4, event=training(0.4)),
    )
    found = totals(ledger)
    read = totals_of(json.loads(json.dumps(balances_json(found))))
    assert [each.balance for each in read] == [each.balance for each in found]
    assert [Balance.from_dict(each.balance.to_dict()) for each in found] == [each.balance for each in found]
    whole = ledger.balance("students")
    assert whole.to_dict()["spent"]["sampled"] is True
    assert "sampled" not in ledger.balance("students", "bob").to_dict()["spent"]
    assert points(ledger)[LineName("students", "", "")][-1][1] == whole.remaining_epsilon
    assert (
        points(ledger, "ana")[LineName("students", "", "ana")][-1][1]
        == ledger.balance("students", "ana").remaining_epsilon
    )
    told = report(ledger)
    everybody, ana = (next(e for e in told.spending if e.role == role) for role in ("everybody", "analyst"))
    assert (everybody.left, everybody.rho, everybody.questions) == (whole.remaining_epsilon, whole.spent.rho, 3)
    assert everybody.epsilon == whole.spent_guarantee.epsilon
    assert ana.left == ledger.balance("students", "ana").remaining_epsilon
    assert {each.mechanism: (each.charges, each.times) for each in told.mechanisms}["sampled"] == (2, 2000)


def test_the_history_says_in_words_what_it_took(ledger, train):
    train()
    [charge] = [entry for entry in ledger.entries() if entry.kind == "charge"]
    words = details(charge)
    assert words.endswith("took ρ = 0.0214 from students and 0.0217 from ana, at most 0.0229")
    assert "sampled" not in details(next(entry for entry in ledger.entries() if entry.kind == "answer"))


def test_groups_are_promised_by_epsilon_and_delta_alone(ledger, train):
    train()
    balance = ledger.balance("students")
    gone = balance.spent_guarantee
    assert balance.group(2) == gone.group(2) and balance.group(2).epsilon == 2 * gone.epsilon


# --- forgeries


def forged(ledger, change, monkeypatch, request=None):
    """What verifying says of a training whose charge was written as ``change`` makes it, by somebody with the keys."""
    write = ledger.write

    def writing(connection, tail, kind, body):
        data = json.loads(body)
        if kind == "charge":
            change(data)
        return write(connection, tail, kind, canonical(data))

    monkeypatch.setattr(ledger, "write", writing)
    ledger.charge(request or Request("students", "ana", "model", 1.0, training(), 1e-9))
    try:
        verify(Ledger.open(ledger.home))
    except LedgerCorruptError as error:
        return f"{error.message} {error.why}"
    return None


def _put(*path):
    *places, name, value = path

    def change(data):
        for place in places:
            data = data[place]
        data[name] = value(data[name]) if callable(value) else value
        if value is None:
            del data[name]

    return change


FORGERIES = {
    "nothing": (lambda data: None, None),
    "fewer units at the data set": (_put("losses", "", "units", lambda n: str(int(n) - 1)), "costs something else"),
    "more units": (_put("losses", "ana", "units", lambda n: str(int(n) + 1)), "costs something else"),
    "no units": (_put("losses", "ana", "units", "0"), "costs something else"),
    "another order": (_put("losses", "", "order", "2"), "costs something else"),
    "a total less": (_put("losses", "ana", None), "costs something else"),
    "a total more": (lambda data: data["losses"].update(bob=data["losses"]["ana"]), "costs something else"),
    "no losses": (_put("losses", None), "does not say"),
    "losses of something else": (_put("event", "event", {"kind": "zcdp", "rho": 1e-6}), "does not say"),
    "the most is less": (_put("units", lambda _: ["1", "0"]), "something else than it cost"),
    "a smaller rho": (_put("rho", 1e-6), "charged less"),
    "more steps": (_put("event", "event", "steps", 1001), "costs more"),
    "less noise": (_put("event", "event", "variance", 2**40), "costs more"),
    "a larger unit": (_put("event", "event", "squared_sensitivity", 2**41), "costs more"),
    "a larger rate": (_put("event", "event", "rate", "1/2"), "costs more"),
    "a rate that cannot be drawn": (_put("event", "event", "rate", "1/3"), "malformed"),
    "a rate of nothing": (_put("event", "event", "rate", "0/1"), "malformed"),
    "more delta": (_put("event", "event", "delta", 1e-8), "costs more"),
    "less delta charged": (_put("delta", 1e-10), "something else than it cost"),
    "steps as text": (_put("event", "event", "steps", "1000"), "malformed"),
    "another relation": (_put("event", "neighbors", "substitute"), "malformed"),
    "another kind": (_put("event", "event", "kind", "sampled-twice"), "malformed"),
    "shared": (lambda data: data.update(shares=1), "costs something else"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_fields_of_a_training_are_seen_even_with_the_keys(ledger, monkeypatch, name):
    change, words = FORGERIES[name]
    found = forged(ledger, change, monkeypatch)
    assert found is None if words is None else words in found


def test_a_training_that_is_made_from_anothers_answer_is_seen(ledger, monkeypatch):
    def asked(analyst):
        return Request("students", analyst, "model", 1.0, training(delta=0.0), shareable=True)

    def share(data):
        data["shares"] = number
        del data["losses"][""]

    ledger.ask(asked("ana"), lambda claim: b"weights")
    [number] = [entry.number for entry in ledger.entries() if entry.kind == "charge"]
    assert "samples units" in forged(ledger, share, monkeypatch, asked("bob"))


def test_a_running_total_lowered_by_what_was_sampled_is_refused(ledger, train):
    train()
    connection = sqlite3.connect(ledger.home / "ledger.sqlite", isolation_level=None)
    connection.execute("UPDATE totals SET loss = '0'")
    connection.close()
    with pytest.raises(LedgerCorruptError, match="running totals"):
        train("more", 0.1, event=training(0.1))
    with pytest.raises(LedgerCorruptError, match="running totals"):
        verify(ledger)


def test_an_approximate_part_brings_its_delta(ledger, train):
    event = Composed((training(0.8), Approx(0.05, 1e-9)))
    with pytest.raises(InputError, match="costs more"):
        train(epsilon=1.0, event=event)  # 2e-9 in all
    ledger.ask(Request("students", "ana", "m", 1.0, event, 2e-9), lambda claim: b"w")
    assert ledger.balance("students").spent.delta == 2e-9
