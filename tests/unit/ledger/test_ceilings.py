"""A price that nobody typed is charged up to what its asker named, or a quarter of what is left; never more."""

import hashlib

import pytest

from dalenius.errors import NOTHING, BudgetError, EngineFailedError, InputError
from dalenius.ledger import Budget, Request
from dalenius.ledger.requests import PART, Ceiling

UNNAMED = Ceiling()
RETRY = tuple(hashlib.sha256(each).hexdigest() for each in (b"key", b"body"))


def left(ledger, analyst="ana"):
    return ledger.balance("students", analyst).remaining_epsilon


def asked(ledger, request, content=b"{}"):
    return ledger.ask(request, lambda claim: content)


def refused(ledger, request, kind=InputError):
    before = ledger.head.count, left(ledger)
    with pytest.raises(kind) as found:
        ledger.ask(request, lambda claim: pytest.fail("looked"))
    assert found.value.charge == NOTHING and (ledger.head.count, left(ledger)) == before
    return found.value


def test_a_quarter_of_what_is_left_is_charged_and_more_is_not(ledger, request_for):
    error = refused(ledger, request_for(epsilon=0.501, ceiling=UNNAMED))
    assert "ε = 0.501, more than a quarter of what you have left" in error.message
    assert "ε ≤ 2 is left" in error.why and "--epsilon 0.501" in error.fix and "epsilon=0.501" in error.fix
    assert not asked(ledger, request_for(epsilon=0.5, ceiling=UNNAMED)).free
    now = left(ledger)
    refused(ledger, request_for("other", epsilon=1.001 * PART * now, ceiling=UNNAMED))
    assert not asked(ledger, request_for("other", epsilon=PART * now, ceiling=UNNAMED)).free


def test_what_was_named_is_the_most_whatever_is_left(ledger, request_for):
    error = refused(ledger, request_for(epsilon=0.3, ceiling=Ceiling(0.2999)))
    assert "more than the ε = 0.2999 that you would pay" in error.message and "--epsilon 0.3" in error.fix
    answered = asked(ledger, request_for(epsilon=1.5, ceiling=Ceiling(1.5)))
    assert answered.receipt.charge["epsilon"] == 1.5  # three quarters


def test_what_is_shown_passes_when_it_is_typed(ledger, request_for):
    price = 0.777777
    shown = float(refused(ledger, request_for(epsilon=price, ceiling=UNNAMED)).fix.split("epsilon=")[1].rstrip(")."))
    assert shown == 0.7778 and not asked(ledger, request_for(epsilon=price, ceiling=Ceiling(shown))).free


def test_a_typed_price_has_no_ceiling(ledger, request_for):
    assert asked(ledger, request_for(epsilon=1.9)).receipt.charge["epsilon"] == 1.9


@pytest.mark.parametrize("ceiling", [UNNAMED, Ceiling(1e-6)])
def test_an_answer_that_was_paid_for_is_free_and_never_refused(ceiling, ledger, request_for):
    asked(ledger, request_for(epsilon=1.9))
    assert asked(ledger, request_for(epsilon=1.9, ceiling=ceiling)).free


def test_more_than_is_left_is_told_as_for_any_price(ledger, request_for):
    for ceiling in (None, UNNAMED):
        error = refused(ledger, request_for(epsilon=2.1, ceiling=ceiling), BudgetError)
        assert error.fits.epsilon == pytest.approx(2.0) and "Your allotment does not cover" in error.message


@pytest.mark.parametrize("fails", [False, True])
def test_the_same_request_again_finds_what_became_of_the_first(fails, ledger, request_for):
    """Less is left by then: it must not be refused as if nothing had been charged."""
    first = request_for(epsilon=0.5, ceiling=UNNAMED, retry=RETRY)
    claim = ledger.charge(first)
    assert first.epsilon > PART * left(ledger)
    if fails:
        ledger.fail(claim)
        with pytest.raises(EngineFailedError, match="failed when it was first asked"):
            asked(ledger, first)
    else:
        ledger.answer(claim, b"{}")
        assert asked(ledger, first).free


def test_the_same_question_at_once_waits_for_the_first_and_is_free(ledger, request_for):
    ledger.charge(request_for(epsilon=0.5, ceiling=UNNAMED))
    assert not hasattr(ledger.charge(request_for(epsilon=0.5, ceiling=UNNAMED)), "receipt")  # it waits, no refusal


def test_it_is_the_askers_own_balance_that_counts(ledger, request_for):
    asked(ledger, request_for("mine", epsilon=1.5))
    refused(ledger, request_for(epsilon=0.4, ceiling=UNNAMED))
    assert not asked(ledger, request_for(epsilon=0.4, analyst="bob", ceiling=UNNAMED)).free


def test_another_analysts_answer_does_not_change_what_is_refused(ledger, request_for):
    """It could serve for less than the data set would pay; who is refused must not learn that it is there."""
    words = []
    for _ in range(2):
        error = refused(ledger, request_for(epsilon=0.6, ceiling=UNNAMED, shareable=True))
        words.append(error.message)
        asked(ledger, request_for(epsilon=0.6, analyst="bob", shareable=True))
    assert words[0] == words[1]


def test_of_several_periods_the_scarcest_counts(ledger, request_for):
    ledger.set_budget("visits", Budget(2.0, 1e-6, period="month"))
    ledger.set_allotment("visits", "ana", 2.0)

    def request(key, epsilon, periods, **more):
        event = request_for(epsilon=epsilon).event
        return Request("visits", "ana", key, epsilon, event, periods=periods, **more)

    asked(ledger, request("january", 1.5, ("2025-01",)))
    asked(ledger, request("february", 0.5, ("2025-02",), ceiling=UNNAMED))
    with pytest.raises(InputError, match="a quarter"):
        asked(ledger, request("both", 0.4, ("2025-01", "2025-03"), ceiling=UNNAMED))
    assert not asked(ledger, request("march", 0.4, ("2025-03",), ceiling=UNNAMED)).free
