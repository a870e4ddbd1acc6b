"""Charging: atomic, never overspent, never refunded, stored answers as INTERFACES says."""

import pytest

from dalenius.accounting.events import Pure, Zcdp
from dalenius.errors import BudgetError, InputError, LedgerUnavailableError, NotAllowedError, UnknownTableError
from dalenius.ledger import Accounting, Answered, Budget, Claim, Ledger, Request, Waiting, verify


def test_a_question_is_charged_before_it_is_looked_at(ledger, request_for):
    seen = []

    def work(claim):
        seen.append(ledger.balance("students").charges)  # read by another transaction: it is on disk
        return b"42"

    answered = ledger.ask(request_for(), work)
    assert seen == [1] and answered.content == b"42" and not answered.free


def test_the_same_question_again_is_free_and_the_same(ledger, request_for):
    first = ledger.ask(request_for(), lambda claim: b"42")
    again = ledger.ask(request_for(), lambda claim: pytest.fail("looked again"))
    assert again.content == first.content and again.free and again.receipt == first.receipt
    assert ledger.balance("students").charges == 1


def test_less_accuracy_is_free_and_more_is_a_new_full_charge(ledger, request_for):
    ledger.ask(request_for(epsilon=0.5), lambda claim: b"42")
    assert ledger.ask(request_for(epsilon=0.4), lambda claim: b"no").free
    before = ledger.balance("students").spent.rho
    better = ledger.ask(request_for(epsilon=0.8), lambda claim: b"41")
    price = ledger.budget("students").filter().price(0.8).rho
    assert not better.free and better.content == b"41"
    assert ledger.balance("students").spent.rho == pytest.approx(before + price)
    assert ledger.ask(request_for(epsilon=0.4), lambda claim: b"no").content == b"41"  # the most accurate one


def test_a_failure_is_never_refunded(ledger, request_for):
    def broken(claim):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.ask(request_for(), broken)
    assert ledger.balance("students").charges == 1
    assert not ledger.ask(request_for(), lambda claim: b"42").free  # asking again is a new charge
    assert ledger.balance("students").charges == 2
    verify(ledger)


def test_seven_questions_of_one_fit_into_three_and_the_eighth_does_not(ledger, request_for):
    ledger.set_allotment("students", "ana", 3.0)
    for number in range(7):
        ledger.ask(request_for(f"q{number}", 1.0), lambda claim: b"x")
    with pytest.raises(BudgetError) as refusal:
        ledger.ask(request_for("q7", 1.0), lambda claim: pytest.fail("looked without paying"))
    assert refusal.value.fits is not None
    fits = refusal.value.fits.epsilon
    assert "would pass" in refusal.value.why
    assert ledger.balance("students").remaining_epsilon == fits
    with pytest.raises(BudgetError):
        ledger.charge(request_for("q7", 1.01 * fits))
    assert isinstance(ledger.charge(request_for("q7", fits)), Claim)


def test_two_thousand_small_questions_fit_into_three():
    """Through the filter that the ledger uses, resumed from stored units each time as the ledger does."""
    budget, units = Budget(3.0, 1e-6), (0, 0)
    for _ in range(2000):
        guard = budget.filter(units=units)
        guard.charge(guard.price(0.05))
        units = guard.units
    pure, admitted = Budget(3.0, accounting=Accounting.PURE).filter(), 0
    while pure.admits(pure.price(0.05)):
        pure.charge(pure.price(0.05))
        admitted += 1
    assert admitted == 59  # 0.05 is a little more than 1/20 in binary


def test_two_allotments_of_two_inside_three_cannot_spend_four(ledger, request_for):
    """Under zCDP two spent allotments of 2 cost less than 3 together; under pure accounting the total stops them."""
    ledger.set_budget("pure", Budget(3.0, accounting=Accounting.PURE))
    for analyst in ("ana", "bob"):
        ledger.set_allotment("pure", analyst, 2.0)
    passed = {"pure": 0, "students": 0}
    for number in range(30):
        for analyst in ("ana", "bob"):
            for dataset in passed:
                asking = Request(dataset, analyst, f"{analyst} {number}", 0.25, Pure(0.001))
                try:
                    ledger.charge(asking)
                    passed[dataset] += 1
                except BudgetError:
                    pass
    assert passed["pure"] == 12  # 3 / 0.25, not 16
    assert ledger.balance("pure").remaining_epsilon == 0
    assert ledger.balance("students").spent_guarantee.epsilon <= 3.0
    for analyst in ("ana", "bob"):
        assert ledger.balance("students", analyst).spent_guarantee.epsilon <= 2.0


def test_the_number_in_a_refusal_passes_when_it_is_typed(ledger, request_for):
    ledger.charge(request_for("a", 1.7))
    with pytest.raises(BudgetError) as refusal:
        ledger.charge(request_for("b", 1.9))
    typed = float(refusal.value.why.split("≤ ")[1].split(" ")[0])
    assert isinstance(ledger.charge(request_for("b", typed)), Claim)


def test_a_refusal_writes_nothing(ledger, request_for):
    before = ledger.head
    with pytest.raises(BudgetError):
        ledger.charge(request_for("a", 2.5))
    assert ledger.head == before


def test_invented_periods_are_no_fresh_budget(ledger, request_for):
    for period in ("p0", "p1"):
        with pytest.raises(InputError, match="periods"):
            ledger.charge(request_for("q", 0.9, periods=(period,)))


def test_an_event_that_costs_more_than_the_price_is_refused(ledger):
    from dalenius.accounting.events import Gaussian, PoissonSampled
    from dalenius.accounting.neighbors import Neighbors

    def charging(event, epsilon=0.5, delta=0.0):
        return ledger.charge(Request("students", "ana", "q", epsilon, event, delta))

    for event in (Zcdp(5.0), Gaussian(1), Zcdp(1e-9, 1e-9), PoissonSampled(0.1, Gaussian(10))):
        with pytest.raises(InputError, match="costs more"):
            charging(event)
    with pytest.raises(InputError, match="relations"):
        charging(Zcdp(1e-9, neighbors=Neighbors.SUBSTITUTE))
    assert ledger.balance("students").charges == 0
    price = ledger.budget("students").filter().price(0.5).rho
    assert isinstance(charging(Zcdp(price)), Claim)


def test_an_analyst_never_has_more_left_than_the_data_set(ledger, request_for):
    ledger.set_allotment("students", "ana", 3.0)
    ledger.charge(request_for("q", 2.9))
    left = ledger.balance("students", "bob").remaining_epsilon
    assert left == ledger.balance("students").remaining_epsilon < 1
    assert isinstance(ledger.charge(request_for("r", left, "bob")), Claim)


def test_errors_after_the_charge_say_what_it_cost(ledger, request_for):
    from dalenius.errors import EngineFailedError

    def failing(claim):
        raise EngineFailedError("It broke.", why="No idea.", fix="Try again.")

    with pytest.raises(EngineFailedError) as failure:
        ledger.ask(request_for(epsilon=0.5), failing)
    assert failure.value.charge.epsilon == 0.5 and "0.5" in failure.value.cost


def test_a_missing_signing_key_is_found_before_anything_is_charged(ledger, request_for):
    (ledger.home / "keys" / "signing.key").unlink()
    opened = Ledger.open(ledger.home)
    with pytest.raises(LedgerUnavailableError):
        opened.ask(request_for(), lambda claim: pytest.fail("looked"))
    assert opened.balance("students").charges == 0


def test_a_claim_is_free_again_when_the_charge_itself_broke_off(ledger, request_for, monkeypatch):
    def broken(head):
        raise LedgerUnavailableError("No.", why="No.", fix="No.")

    monkeypatch.setattr(ledger.anchor, "advance", broken)
    with pytest.raises(LedgerUnavailableError):
        ledger.charge(request_for())
    monkeypatch.undo()
    assert ledger.ask(request_for(), lambda claim: b"42", patience=1).content == b"42"
    assert ledger.balance("students").charges == 1


def test_claims_that_are_done_are_forgotten(ledger, request_for):
    from dalenius.ledger import questions

    before = len(questions._ACTIVE)
    ledger.answer(ledger.charge(request_for("a")), b"1")
    ledger.fail(ledger.charge(request_for("b")))
    ledger.ask(request_for("a"), lambda claim: b"no")
    assert len(questions._ACTIVE) == before


def test_delta_is_capped_for_data_set_and_analyst(ledger, request_for):
    ledger.charge(request_for("keys", 0.1, delta=4e-7))
    with pytest.raises(BudgetError, match="δ"):
        ledger.charge(request_for("more keys", 0.1, delta=2e-7))
    ledger.charge(request_for("fewer keys", 0.1, delta=1e-7))


def test_every_period_that_is_read_is_charged_at_once_or_none(ledger):
    ledger.set_budget("visits", Budget(1.0, 1e-6, unit="person-month", period="month"))
    ledger.set_allotment("visits", "ana", 1.0)

    def asking(key, epsilon, *periods):
        return Request("visits", "ana", key, epsilon, Zcdp(1e-9), periods=periods)

    ledger.charge(asking("january", 0.9, "2025-01"))
    with pytest.raises(BudgetError, match="2025-01"):
        ledger.charge(asking("both", 0.9, "2025-01", "2025-02"))
    with pytest.raises(InputError, match="periods"):
        ledger.charge(Request("visits", "ana", "all", 0.1, Zcdp(1e-9)))
    assert ledger.balance("visits", period="2025-02").charges == 0
    ledger.charge(asking("february", 0.9, "2025-02"))
    assert ledger.periods("visits") == ["2025-01", "2025-02"]
    with pytest.raises(InputError):
        asking("none", 0.9)
    verify(ledger)


def test_pure_budgets_add_epsilon_and_refuse_delta(ledger):
    ledger.set_budget("pure", Budget(1.0, accounting=Accounting.PURE))
    ledger.set_allotment("pure", "ana", 1.0)
    for number in range(4):
        ledger.charge(Request("pure", "ana", f"q{number}", 0.25, Pure(0.25)))
    with pytest.raises(BudgetError):
        ledger.charge(Request("pure", "ana", "q4", 1e-6, Pure(1e-6)))
    with pytest.raises(InputError, match="δ"):
        ledger.charge(Request("pure", "ana", "q5", 0.1, Pure(0.1), delta=1e-9))


def test_strangers_and_unknown_data_sets_are_refused(ledger, request_for):
    with pytest.raises(NotAllowedError):
        ledger.charge(request_for(analyst="eve"))
    with pytest.raises(UnknownTableError):
        ledger.charge(Request("nothing", "ana", "k", 0.1, Zcdp(1e-9)))


def test_a_question_in_flight_makes_the_same_question_wait(ledger, request_for):
    claim = ledger.charge(request_for())
    assert isinstance(claim, Claim)
    assert isinstance(ledger.charge(request_for()), Waiting)
    with pytest.raises(LedgerUnavailableError, match="still being answered"):
        ledger.ask(request_for(), lambda claim: b"no", patience=0.05)
    ledger.answer(claim, b"42")
    assert isinstance(ledger.charge(request_for()), Answered)


def test_a_claim_passes_on_only_when_its_holder_is_dead_and_the_old_one_cannot_answer(ledger, request_for, monkeypatch):
    old = ledger.charge(request_for(epsilon=0.5))
    monkeypatch.setattr("dalenius.ledger.questions.is_dead", lambda holder: True)
    new = ledger.charge(request_for(epsilon=0.3))
    monkeypatch.undo()
    assert isinstance(new, Claim) and new.number == old.number and new.fence == old.fence + 1
    assert new.epsilon == 0.5  # noise for what was charged, not for what was asked now
    with pytest.raises(LedgerUnavailableError, match="no longer ours"):
        ledger.answer(old, b"late")
    assert ledger.answer(new, b"42").content == b"42"
    with pytest.raises(LedgerUnavailableError):
        ledger.fail(new)


def test_work_that_broke_off_in_a_living_process_can_be_taken_up_again(ledger, request_for, monkeypatch):
    from dalenius.ledger import charging

    def no_room(*_):
        raise LedgerUnavailableError("No room.", why="Full.", fix="Free some.")

    monkeypatch.setattr(charging, "answer", no_room)
    with pytest.raises(LedgerUnavailableError):
        ledger.ask(request_for(), lambda claim: b"never left")
    monkeypatch.undo()
    assert ledger.ask(request_for(), lambda claim: b"42", patience=1).content == b"42"
    assert ledger.balance("students").charges == 1


def test_budgets_may_grow_but_what_they_mean_is_fixed(ledger, request_for):
    ledger.set_budget("students", Budget(4.0, 1e-6, unit="student_id"), reason="a second year")
    assert ledger.balance("students").epsilon == 4.0
    for changed in (
        Budget(4.0, 1e-5, unit="student_id"),
        Budget(4.0, accounting=Accounting.PURE, unit="student_id"),
        Budget(4.0, 1e-6, unit="row"),
    ):
        with pytest.raises(NotAllowedError):
            ledger.set_budget("students", changed)
    verify(ledger)


def test_owner_actions_are_entries_of_the_same_chain(ledger):
    for kind in ("policy", "publication", "refresh", "token", "note"):
        ledger.record(kind, {"what": kind})
    with pytest.raises(InputError):
        ledger.record("charge", {"what": "a free lunch"})
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds[-5:] == ["policy", "publication", "refresh", "token", "note"]
    assert verify(ledger).entries == len(kinds)


def test_a_clock_that_goes_backwards_changes_nothing(ledger, request_for, monkeypatch):
    import datetime as dt

    from dalenius.ledger import ledger as module

    times = iter(range(1000, 0, -1))

    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return dt.datetime.fromtimestamp(next(times) * 86400, tz)

    monkeypatch.setattr(module, "datetime", Clock)
    for number in range(3):
        ledger.ask(request_for(f"q{number}", 0.2), lambda claim: b"x")
    assert ledger.ask(request_for("q0", 0.2), lambda claim: b"no").free
    assert verify(ledger).charges == 3


def test_groups_stand_beside_every_total(ledger, request_for):
    ledger.charge(request_for(epsilon=1.0))
    groups = ledger.balance("students").to_dict()["groups"]
    assert set(groups) == {"2", "5", "10"}
    assert 1.0 < groups["2"]["epsilon"] < groups["5"]["epsilon"] < groups["10"]["epsilon"]


@pytest.mark.parametrize("bad", [-1, 0, float("nan"), float("inf"), 1e-320, True, "1"])
def test_bad_epsilons_never_reach_the_file(ledger, request_for, bad):
    before = ledger.head
    for broken in (
        lambda: request_for(epsilon=bad),
        lambda: ledger.set_allotment("students", "ana", bad),
        lambda: Budget(bad, 1e-6),
    ):
        with pytest.raises(InputError):
            broken()
    assert ledger.head == before


@pytest.mark.parametrize("left", [("keys",), ("keys", "ledger.anchor"), ("keys", "ledger.anchor", "ledger.new")])
def test_a_creation_that_broke_off_is_taken_up_again(tmp_path, left):
    """Killed after the keys, after the anchor, or while the file was being filled."""
    home = tmp_path / "home"
    Ledger.create(home).database.close()
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    import shutil

    shutil.copytree(home / "keys", fresh / "keys")
    ledger = Ledger(fresh, __import__("dalenius.ledger.home", fromlist=["LedgerKeys"]).LedgerKeys.load(fresh))
    if "ledger.anchor" in left:
        from dalenius.ledger.chain import Head, origin

        ledger.anchor.create(Head(0, origin(ledger.keys.chain)))
        with pytest.raises(LedgerUnavailableError, match="no ledger"):
            Ledger.open(fresh)
    if "ledger.new" in left:
        (fresh / "ledger.new").write_bytes(b"half")
    assert verify(Ledger.create(fresh)).entries == 1


def test_an_existing_ledger_is_never_replaced(ledger):
    with pytest.raises(InputError):
        Ledger.create(ledger.home)


def test_files_are_for_their_owner_only(ledger):
    assert ledger.home.stat().st_mode & 0o777 == 0o700
    for file in ledger.home.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0, file
