"""What a question takes of δ by itself: enough to find keys, never more than there is, and a life of questions long."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.accounting.events import Zcdp
from dalenius.accounting.filters import ZCDPFilter
from dalenius.errors import BudgetError, InputError, NotAllowedError
from dalenius.ledger import Budget, Ledger, Request
from dalenius.ledger.budgets import Accounting
from dalenius.ledger.key_delta import LEAST, MOST, Left, count_questions, default_delta, shortened
from dalenius.ledger.verification import verify

BUDGET = Budget(3.0, 1e-6)
POOL = 5e-7


def life(budget, epsilon, most=10_000):
    """A filter through which questions of one size went, each with the δ that it takes by itself; and how many."""
    guard, done = budget.filter(), 0
    while done < most:
        left = Left(guard.remaining_epsilon, guard.remaining_delta)
        cost = guard.price(epsilon, default_delta(budget, epsilon, left))
        if not guard.admits(cost):
            break
        guard.charge(cost)
        done += 1
    return guard, done


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.5, 0.2])
def test_rho_is_gone_before_delta(epsilon):
    guard, done = life(BUDGET, epsilon)
    plain = BUDGET.filter()
    for _ in range(done):
        plain.charge(plain.price(epsilon))
    assert not plain.admits(plain.price(epsilon))  # as many as if no keys had to be found
    assert guard.remaining_delta > POOL * LEAST


def test_a_question_takes_half_the_part_of_delta_that_it_takes_of_rho():
    guard = BUDGET.filter()
    part = guard.price(0.2).rho / guard.price(3.0).rho
    assert default_delta(BUDGET, 0.2) == shortened(POOL * part / 2)
    half = Left(3.0, POOL / 2)
    assert default_delta(BUDGET, 0.2, half) == shortened(POOL * part / 4)
    less_rho = Left(1.5, POOL)  # of which the same ε is a larger part
    assert default_delta(BUDGET, 0.2, less_rho) > 3 * default_delta(BUDGET, 0.2)


@given(
    epsilon=st.floats(1e-6, 100),
    rho_left=st.one_of(st.just(0.0), st.floats(1e-9, 3.0)),
    delta_left=st.floats(0, POOL),
    part=st.floats(0.01, 0.99),
)
def test_it_never_leaves_its_bounds_whatever_is_left(epsilon, rho_left, delta_left, part):
    budget = Budget(3.0, 1e-6, selection=part)
    pool = budget.filter().remaining_delta
    found = default_delta(budget, epsilon, Left(rho_left, min(delta_left, pool)))
    assert 0.99 * pool * LEAST <= found <= pool * MOST
    assert float(f"{found:.3g}") == found  # what is shown is what is charged


def test_a_pure_budget_takes_none():
    assert default_delta(Budget(3.0, accounting=Accounting.PURE), 0.5) == 0


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 0.11])
@pytest.mark.parametrize("selection", [0.1, 0.5, 0.9])
def test_what_is_counted_is_what_passes(epsilon, selection):
    budget = Budget(2.0, 1e-6, selection=selection)
    _, done = life(budget, epsilon)
    pool = budget.filter().remaining_delta
    counted = count_questions(budget, epsilon, Left(2.0, pool), 10_000)
    by_rho = int(budget.filter().price(2.0).rho / budget.filter().price(epsilon).rho)
    assert min(counted, by_rho) == pytest.approx(done, abs=1)


def test_of_small_questions_there_are_two_thousand_and_counting_them_is_quick():
    assert count_questions(BUDGET, 0.001, Left(3.0, POOL), 10**9) == pytest.approx(2000, abs=20)
    assert count_questions(BUDGET, 0.001, Left(3.0, 0.0), 10**9) == 0
    assert count_questions(BUDGET, 0.5, Left(3.0, POOL), 0) == 0


def test_an_owner_who_raises_epsilon_finds_delta_left():
    """δ does not grow with ε: what the first budget's questions left must do for some of the second's."""
    guard, _ = life(BUDGET, 0.5)
    more = BUDGET.filter(6.0, guard.units)
    left = Left(more.remaining_epsilon, more.remaining_delta)
    assert count_questions(Budget(6.0, 1e-6), 0.5, left, 10_000) >= 20


# --- the filter's promise, which does not rest on what anybody chose


@settings(max_examples=60)
@given(
    selection=st.floats(0.001, 0.999),
    delta=st.floats(1e-12, 0.1),
    asked=st.lists(st.tuples(st.floats(0.01, 2.0), st.one_of(st.none(), st.floats(1e-15, 0.05))), max_size=60),
)
def test_no_way_of_asking_overspends_delta(selection, delta, asked):
    budget = Budget(3.0, delta, selection=selection)
    guard, spent = budget.filter(), Fraction(0)
    for epsilon, typed in asked:
        left = Left(guard.remaining_epsilon, guard.remaining_delta)
        takes = default_delta(budget, epsilon, left) if typed is None else typed
        cost = guard.price(epsilon, takes)
        if guard.admits(cost):
            guard.charge(cost)
            spent += Fraction(takes)
    assert spent + Fraction(budget.conversion_delta) <= Fraction(delta)
    whole = budget.filter()
    all_of_it = whole.remaining_delta
    assert Fraction(all_of_it) + Fraction(budget.conversion_delta) <= Fraction(delta) < Fraction(1.000001 * delta)
    whole.charge(whole.price(3.0, all_of_it))  # all of both, and then nothing more
    assert not whole.admits(whole.price(1e-6)) and whole.remaining_delta < 1e-12 * delta


@given(st.floats(1e-290, 0.9))
def test_budgets_that_do_not_say_how_to_part_delta_keep_their_halves(delta):
    guard = ZCDPFilter(3.0, delta)
    assert guard.conversion_delta == Budget(3.0, delta).conversion_delta == delta / 2
    assert guard._cap_delta == (Fraction(delta) / 2 * 2**128).__floor__()


def test_more_for_finding_keys_is_less_rho():
    caps = [Budget(3.0, 1e-6, selection=each).filter() for each in (0.1, 0.5, 0.9, 0.99)]
    assert [each.remaining_delta for each in caps] == pytest.approx([1e-7, 5e-7, 9e-7, 9.9e-7])
    rhos = [each.price(3.0).rho for each in caps]
    assert rhos == sorted(rhos, reverse=True) and rhos[-1] > 0.7 * rhos[0]


# --- in the ledger


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, 0.0001, 0.9999, float("nan"), "0.5", True])
def test_a_part_of_nothing_or_of_all_is_no_budget(bad):
    with pytest.raises(InputError):
        Budget(1.0, 1e-6, selection=bad)


def test_a_pure_budget_has_no_delta_to_part():
    with pytest.raises(InputError, match="finding keys"):
        Budget(1.0, accounting=Accounting.PURE, selection=0.7)


def test_a_budget_says_it_only_where_it_is_another():
    assert "selection" not in BUDGET.to_dict()  # so that what was written before reads, and is written, as it was
    other = Budget(3.0, 1e-6, selection=0.8)
    assert other.to_dict()["selection"] == 0.8
    assert Budget.from_dict(other.to_dict()) == other and Budget.from_dict(BUDGET.to_dict()) == BUDGET


def test_delta_cannot_be_parted_anew(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("visits", Budget(3.0, 1e-6, selection=0.8))
    for other in (0.5, 0.9):
        with pytest.raises(NotAllowedError, match="selection"):
            ledger.set_budget("visits", Budget(3.0, 1e-6, selection=other), "more for keys")
    ledger.set_budget("visits", Budget(4.0, 1e-6, selection=0.8), "more of all")
    assert ledger.budget("visits") == Budget(4.0, 1e-6, selection=0.8)


def test_a_ledger_charges_by_its_own_part_and_verifies(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    budget = Budget(3.0, 1e-6, selection=0.8)
    ledger.set_budget("visits", budget)
    ledger.set_allotment("visits", "ana", 3.0)
    ledger.ask(Request("visits", "ana", "keys", 0.5, Zcdp(1e-9, 7e-7), delta=7e-7), lambda _: b"1")
    with pytest.raises(BudgetError, match="δ"):
        ledger.charge(Request("visits", "ana", "more", 0.5, Zcdp(1e-9, 2e-7), delta=2e-7))
    balance = ledger.balance("visits")
    assert balance.remaining_delta == pytest.approx(1e-7)
    assert balance.spent_guarantee.delta == pytest.approx(2e-7 + 7e-7)
    assert balance.spent_guarantee.epsilon == pytest.approx(0.5, rel=1e-9)
    assert balance.to_dict()["selection"] == 0.8
    verify(ledger)
    again = Ledger.open(ledger.home)
    assert again.budget("visits") == budget


def request(key, epsilon, delta, **more):
    return Request("students", "ana", key, epsilon, Zcdp(1e-9, delta), delta=delta, **more)


def test_the_same_question_is_free_whatever_delta_it_would_take_now(ledger):
    ledger.ask(request("keys", 0.5, 1e-9, delta_chosen=True), lambda _: b"first")
    for now in (1e-10, 1e-9, 1e-8):
        again = ledger.ask(request("keys", 0.5, now, delta_chosen=True), lambda _: pytest.fail("looked"))
        assert again.free and again.content == b"first"
    typed = ledger.ask(request("keys", 0.5, 1e-8), lambda _: b"second")  # more than was paid for, and on purpose
    assert not typed.free and typed.content == b"second"
    dearer = ledger.ask(request("keys", 0.6, 1e-10, delta_chosen=True), lambda _: b"third")
    assert not dearer.free


def test_two_at_once_are_one_charge_though_the_first_changed_what_the_second_would_take(ledger):
    claim = ledger.charge(request("keys", 0.5, 1e-9, delta_chosen=True))
    waiting = ledger.charge(request("keys", 0.5, 2e-9, delta_chosen=True))
    assert waiting.number == claim.number
    ledger.answer(claim, b"1")
    assert ledger.ask(request("keys", 0.5, 2e-9, delta_chosen=True), lambda _: b"2").content == b"1"
    assert ledger.balance("students").charges == 1


def test_a_request_that_comes_again_is_taken_up_at_what_it_was_charged(ledger):
    from dalenius.ledger import questions

    retry = ("a" * 64, "b" * 64)
    claim = ledger.charge(request("keys", 0.5, 1e-9, delta_chosen=True, retry=retry))
    questions.let_go(claim.holder)  # its process died
    later = ledger.charge(request("keys", 0.5, 3e-9, delta_chosen=True, retry=retry))
    assert (later.number, later.epsilon, later.delta) == (claim.number, 0.5, 1e-9)
    ledger.answer(later, b"1")
    assert ledger.balance("students").spent.delta == 1e-9
    verify(ledger)
