"""A second analyst is charged what was typed, from the own allotment alone, and made an answer of its own."""

import threading
from dataclasses import replace

import pytest

from dalenius.accounting.events import Pure, Zcdp
from dalenius.errors import BudgetError, EngineFailedError, LedgerCorruptError
from dalenius.ledger import Accounting, Answered, Budget, Claim, Ledger, Request, Waiting, verify
from dalenius.ledger.chain import canonical
from dalenius.ledger.projection import BrokenRuleError
from dalenius.ledger.verification import Replay


def stored(claim):
    return b"precise"


def never(claim):
    pytest.fail("looked")


@pytest.fixture
def shared(ledger, request_for):
    """`shared(epsilon, analyst)`: what comes of the question that ana asked at ε = 1.5."""
    ledger.ask(request_for(epsilon=1.5), stored)

    def sharing(epsilon, analyst="bob", **more):
        made = []

        def work(claim):
            made.append(claim)
            return ledger.shared(claim) + b" + noise" if claim.shares else b"looked"

        return ledger.ask(request_for(epsilon=epsilon, analyst=analyst, shareable=True, **more), work), made

    return sharing


def price(ledger, epsilon):
    return ledger.budget("students").filter().price(epsilon).rho


def test_typed_is_charged_from_the_own_allotment_alone(ledger, shared):
    before = ledger.balance("students")
    answered, (claim,) = shared(0.01)
    assert answered.content == b"precise + noise" and not answered.free
    assert claim.epsilon == 0.01 and claim.shares == 5
    assert answered.receipt.charge == {"epsilon": 0.01, "delta": 0.0, "rho": price(ledger, 0.01)}
    after = ledger.balance("students")
    assert (after.spent, after.charges) == (before.spent, before.charges)
    assert ledger.balance("students", "bob").spent.rho == pytest.approx(price(ledger, 0.01), rel=1e-12)
    assert ledger.balance("students", "bob").charges == 1
    assert ledger.balance("students", "ana").spent.rho == pytest.approx(price(ledger, 1.5), rel=1e-12)
    assert not [entry for entry in ledger.entries() if entry.kind == "grant"]
    assert verify(ledger).charges == 2


def test_asked_again_it_is_the_same_and_free(ledger, shared):
    first, _ = shared(0.2)
    for epsilon in (0.2, 0.1):
        again, made = shared(epsilon)
        assert again.free and not made and (again.content, again.receipt) == (first.content, first.receipt)
    more, made = shared(0.3)  # more accuracy is a charge of its own, of what is typed
    assert not more.free and made[0].shares == 5
    spent = ledger.balance("students", "bob").spent.rho
    assert spent == pytest.approx(price(ledger, 0.2) + price(ledger, 0.3), rel=1e-12)


def test_a_coarsened_answer_is_never_coarsened_again(ledger, shared, request_for):
    shared(0.5)
    ledger.set_allotment("students", "cy", 1.0)
    _, (claim,) = shared(0.3, "cy")
    assert claim.shares == 5
    # ana's own answer is the more accurate one, and stays free
    assert ledger.ask(request_for(epsilon=0.3, shareable=True), never).content == b"precise"


@pytest.mark.parametrize("why", ["chosen from the data", "less accurate", "the owner", "another question"])
def test_otherwise_it_is_a_full_charge_like_any(ledger, request_for, why):
    asked = {"epsilon": 0.5, "analyst": "bob", "shareable": True}
    ledger.ask(request_for(epsilon=0.4 if why == "less accurate" else 1.0), stored)
    if why == "chosen from the data":
        asked["shareable"] = False
    if why == "the owner":  # who has no allotment to pay from
        asked["analyst"] = ""
    if why == "another question":
        asked["key"] = "another"
    step = ledger.charge(request_for(**asked))
    assert isinstance(step, Claim) and step.shares is None
    assert ledger.balance("students").charges == 2
    verify(ledger)


def test_found_groups_are_never_shared(ledger, request_for):
    ledger.ask(request_for("keys", 1.0, delta=1e-7), stored)
    step = ledger.charge(request_for("keys", 0.5, "bob", delta=1e-8, shareable=True))
    assert isinstance(step, Claim) and step.shares is None


def test_the_allotment_must_cover_it_and_the_data_set_need_not(ledger, shared, request_for):
    ledger.set_allotment("students", "cy", 3.0)
    ledger.ask(request_for("rest", ledger.balance("students").remaining_epsilon, "cy"), stored)
    assert ledger.balance("students").remaining_epsilon < 0.05
    with pytest.raises(BudgetError):
        ledger.charge(request_for("new", 0.1, "bob", shareable=True))
    answered, _ = shared(0.1)
    assert not answered.free
    ledger.set_allotment("students", "dan", 0.09)
    said = []
    for key in ("count", "never asked"):
        with pytest.raises(BudgetError) as refused:
            ledger.charge(request_for(key, 0.1, "dan", shareable=True))
        said.append(refused.value.to_dict())
    assert said[0] == said[1]  # not even the words of a refusal tell that somebody has asked it
    verify(ledger)


def test_who_asks_first_at_a_high_price_drains_nobody(ledger, request_for):
    """Ana asks ten likely questions at all she has; bob's ten at ε = 0.01 cost him what they would have anyway."""
    ledger.set_budget("students", Budget(12.0, 1e-6, unit="student_id"))
    ledger.set_allotment("students", "ana", 12.0)
    for number in range(10):
        ledger.ask(request_for(f"q{number}", 1.5), stored)
    whole = ledger.balance("students").spent
    for number in range(10):
        ledger.ask(request_for(f"q{number}", 0.01, "bob", shareable=True), lambda claim: b"coarse")
    assert ledger.balance("students", "bob").spent.rho == pytest.approx(10 * price(ledger, 0.01), rel=1e-9)
    assert ledger.balance("students").spent == whole


def test_pure_accounting_adds_what_was_typed(ledger):
    ledger.set_budget("pure", Budget(2.0, accounting=Accounting.PURE))
    for analyst in ("ana", "bob"):
        ledger.set_allotment("pure", analyst, 2.0)
    ledger.ask(Request("pure", "ana", "q", 1.5, Pure(1.5)), stored)
    answered = ledger.ask(Request("pure", "bob", "q", 0.25, Pure(0.25), shareable=True), lambda claim: b"x")
    assert answered.receipt.charge["epsilon"] == 0.25
    assert ledger.balance("pure", "bob").spent.epsilon == 0.25
    assert ledger.balance("pure").spent.epsilon == 1.5
    verify(ledger)


def test_the_same_periods_of_the_allotment_pay(ledger):
    ledger.set_budget("visits", Budget(1.0, 1e-6, unit="person-month", period="month"))
    for analyst in ("ana", "bob"):
        ledger.set_allotment("visits", analyst, 1.0)
    months = ("2025-01", "2025-02")

    def asking(analyst, epsilon, periods=months):
        return Request("visits", analyst, "q", epsilon, Zcdp(1e-9), periods=periods, shareable=True)

    ledger.ask(asking("ana", 0.9), stored)
    ledger.ask(asking("bob", 0.3), lambda claim: b"x")
    for month in months:
        assert ledger.balance("visits", "bob", month).charges == ledger.balance("visits", period=month).charges == 1
    other = ledger.charge(asking("bob", 0.5, ("2025-03",)))
    assert isinstance(other, Claim) and other.shares is None
    verify(ledger)


def test_after_new_people_nothing_is_shared(ledger, shared, request_for):
    entry = ("epoch", {"dataset": "students", "epoch": 1, "reason": "a new school year began"})
    ledger.record_all([entry], since=ledger.head.count, overtaken=lambda _: False)
    step = ledger.charge(request_for(epsilon=0.5, analyst="bob", shareable=True, epoch=1))
    assert isinstance(step, Claim) and step.shares is None
    verify(ledger)


def test_a_failure_stays_charged_and_a_retry_is_charged_once(ledger, shared, request_for, monkeypatch):
    named = {"retry": ("1" * 64, "2" * 64)}
    asked = request_for(epsilon=0.2, analyst="bob", shareable=True, **named)
    first = ledger.charge(asked)
    monkeypatch.setattr("dalenius.ledger.questions.is_dead", lambda holder: True)
    taken = ledger.charge(asked)
    assert taken.number == first.number and taken.shares == first.shares == 5  # still from the stored answer alone
    monkeypatch.undo()
    ledger.fail(taken)
    with pytest.raises(EngineFailedError):
        ledger.ask(asked, never)
    assert ledger.balance("students", "bob").charges == 1 and ledger.balance("students").charges == 1
    verify(ledger)


def test_a_question_in_flight_is_waited_for_by_who_could_pay_in_full(ledger, request_for):
    claim = ledger.charge(request_for(epsilon=1.0))
    asking = request_for(epsilon=0.2, analyst="bob", shareable=True)
    waiting = ledger.charge(asking)
    assert isinstance(waiting, Waiting) and not waiting.own
    ledger.set_allotment("students", "poor", 0.1)
    with pytest.raises(BudgetError):  # at once, as if nobody were asking
        ledger.charge(request_for(epsilon=0.2, analyst="poor", shareable=True))
    private = ledger.charge(request_for(epsilon=0.3, analyst="bob"))
    assert isinstance(private, Claim) and private.shares is None
    ledger.fail(private)
    ledger.answer(claim, b"precise")
    assert ledger.charge(asking).shares == claim.number


def test_who_waits_too_long_for_another_pays_for_an_own_answer_and_hears_of_nobody(ledger, request_for):
    ledger.charge(request_for(epsilon=1.0))
    found = ledger.ask(request_for(epsilon=0.2, analyst="bob", shareable=True), lambda claim: b"own", patience=0.02)
    assert found.content == b"own" and found.receipt.charge["epsilon"] == 0.2
    assert ledger.balance("students").charges == 2


def test_nobody_finishes_another_analysts_question_for_a_dead_process(ledger, request_for, monkeypatch):
    left = ledger.charge(request_for(epsilon=1.0))
    monkeypatch.setattr("dalenius.ledger.questions.is_dead", lambda holder: True)
    step = ledger.charge(request_for(epsilon=0.2, analyst="bob", shareable=True))
    assert step.number != left.number and step.epsilon == 0.2 and step.shares is None
    own = ledger.charge(request_for(epsilon=0.5))
    assert own.number == left.number and own.epsilon == 1.0


def test_second_askers_at_once_each_pay_what_they_typed(ledger, shared, request_for):
    names = [f"analyst {number}" for number in range(4)]
    for name in names:
        ledger.set_allotment("students", name, 0.5)
    start, found = threading.Barrier(8, timeout=60), []

    def asking(name):
        start.wait()
        found.append(
            ledger.ask(request_for(epsilon=0.4, analyst=name, shareable=True), lambda claim: b"of %d" % claim.number)
        )
        ledger.database.close()

    threads = [threading.Thread(target=asking, args=(name,)) for name in names * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.content for each in found}) == 4 and sum(each.free for each in found) == 4
    for name in names:
        assert ledger.balance("students", name).charges == 1
        assert ledger.balance("students", name).spent.rho == pytest.approx(price(ledger, 0.4), rel=1e-9)
    assert ledger.balance("students").charges == 1
    verify(ledger)


def test_an_old_grant_stays_free_for_who_paid_for_it(ledger, request_for, grant):
    ledger.ask(request_for(epsilon=0.5), stored)
    granted = grant(ledger)
    again = ledger.ask(request_for(epsilon=0.4, analyst="bob", shareable=True), never)
    assert again.free and again.receipt == granted.receipt
    verify(Ledger.open(ledger.home))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"shares": 999}, "not there"),
        ({"shares": 1}, "not there"),
        ({"shares": 8}, "itself made from another"),
        ({"shares": 10}, "not answered"),
        ({"analyst": "ana"}, "own"),
        ({"analyst": ""}, "own"),
        ({"key": "another"}, "another question"),
        ({"dataset": "others"}, "another question"),
        ({"periods": []}, "periods"),
    ],
)
def test_a_charge_that_shares_what_it_may_not_is_seen(ledger, shared, request_for, members, why):
    ledger.set_allotment("students", "cy", 1.0)
    shared(0.2)
    ledger.charge(request_for("open", 0.3))
    ledger.charge(request_for(epsilon=0.1, analyst="cy", shareable=True))
    *before, last = ledger.entries()
    replay = Replay()
    for entry in before:
        replay.add(entry)
    replay.budgets["others"] = replay.budgets["students"]
    replay.allotments["others", "cy"] = 1.0
    assert [number for number, each in replay.questions.items() if each.shares is not None] == [8]
    with pytest.raises(BrokenRuleError, match=why):
        replay.add(replace(last, body=canonical(last.data | members)))
    replay.add(last)


def test_more_than_the_original_bought_is_seen(ledger, shared, request_for):
    ledger.set_allotment("students", "cy", 2.0)
    ledger.charge(request_for(epsilon=1.0, analyst="cy", shareable=True))
    *before, last = ledger.entries()
    replay = Replay()
    for entry in before:
        replay.add(entry)
    replay.questions[5].epsilon = 0.9
    with pytest.raises(BrokenRuleError, match="more noise"):
        replay.add(last)


def test_a_source_exchanged_in_the_tables_is_refused_before_it_is_used(ledger, shared, request_for):
    ledger.ask(request_for("other", 0.5), lambda claim: b"another answer")
    claim = ledger.charge(request_for(epsilon=0.2, analyst="bob", shareable=True))
    with pytest.raises(LedgerCorruptError):
        ledger.shared(replace(claim, shares=claim.shares + 2))
    assert ledger.shared(claim) == b"precise"
    assert isinstance(ledger.answer(claim, b"coarse"), Answered)
