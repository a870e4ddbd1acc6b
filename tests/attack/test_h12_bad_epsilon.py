"""H12: an epsilon that buys no guarantee is refused before the data is touched; any other is answered soundly."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.attack.hostile import nothing_charged, people, plan_of, protected, state

from dalenius.accounting.conversions import zcdp_epsilon
from dalenius.errors import NOTHING, BudgetError, InputError
from dalenius.ledger.ledger import Ledger
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.queries import answering

QUESTION = "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region"
BAD: list[Any] = [-1, 0, 0.0, -0.0, -0.5, math.nan, math.inf, -math.inf, 5e-324, 1e-320, -(10**400), 10**400, 1e-101]
BAD += [Fraction(0), Fraction(-1, 3), Fraction(10**400), Fraction(1, 10**400), True, False, "1", "nan", b"1", ""]
BAD += [Decimal(1), Decimal("NaN"), 1j, [1], (1,), {"epsilon": 1}, np.float32(0.5), np.int64(1), np.bool_(True)]
BAD += [np.array(0.5), np.array([0.5]), np.float64("nan"), np.float64("inf"), np.float64(-1), object]
TOO_MUCH = [3.0001, 100, 1e99, 10**99, Fraction(10**90)]
SMALL_NOISE = [1e-100, 1e-60]  # so little that no noise of that size can be drawn
SOUND = [1e-9, 1e-20, 0.5, 1, 3, Fraction(1, 3), np.float64(0.25)]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h12"), people(victim=True))


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h12-pure"), people(victim=True), accounting="pure")


@pytest.fixture
def untouched(monkeypatch, curator, pure):
    """The test fails if an engine runs, or an answer is measured; `protect` has done both before."""
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    monkeypatch.setattr(answering, "measure_plan", lambda *_, **__: pytest.fail("an answer was measured"))


def shown(value):
    return f"{type(value).__name__} {value}"[:24]


@pytest.mark.parametrize("epsilon", BAD, ids=shown)
@pytest.mark.parametrize("accounting", ["curator", "pure"])
def test_an_epsilon_that_buys_nothing_is_refused_before_the_data_is_touched(request, untouched, epsilon, accounting):
    curator = request.getfixturevalue(accounting)
    with nothing_charged(curator):
        for call in (curator.analyst("eve").ask, curator.analyst("eve").preview):
            with pytest.raises(InputError) as refusal:
                call(QUESTION, epsilon=epsilon)
            assert (refusal.value.code, refusal.value.exit_code) == ("input.invalid", 2)
            assert refusal.value.charge == NOTHING


@pytest.mark.parametrize("epsilon", SMALL_NOISE)
def test_an_epsilon_whose_noise_cannot_be_drawn_is_refused_before_the_data_is_touched(curator, untouched, epsilon):
    with nothing_charged(curator), pytest.raises(InputError):
        curator.analyst("eve").ask(QUESTION, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", TOO_MUCH, ids=shown)
@pytest.mark.parametrize("accounting", ["curator", "pure"])
def test_more_than_the_budget_is_refused_before_the_data_is_touched(request, untouched, epsilon, accounting):
    curator = request.getfixturevalue(accounting)
    with nothing_charged(curator), pytest.raises((BudgetError, InputError)) as refusal:
        curator.analyst("eve").ask(QUESTION, epsilon=epsilon)
    assert refusal.value.charge == NOTHING


def test_without_an_epsilon_the_price_is_told_and_nothing_charged(curator, untouched):
    with nothing_charged(curator), pytest.raises(InputError) as refusal:
        curator.analyst("eve").ask(QUESTION, epsilon=None)
    assert "ε = 0.05" in refusal.value.why


@pytest.mark.parametrize("epsilon", SOUND, ids=shown)
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_what_is_answered_has_the_noise_that_the_ledger_was_charged_for(tmp_path, epsilon, accounting):
    curator = protected(tmp_path, people(victim=True), accounting=accounting)
    before = state(curator)
    contents: dict[str, Any] = {}
    ask = Ledger.ask

    def kept(self, request, work, **more):
        contents["event"] = request.event
        found = ask(self, request, work, **more)
        contents["answer"] = found.content
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "ask", kept)
        release = curator.analyst("eve").ask(QUESTION, epsilon=epsilon)
    assert state(curator) != before
    plan = plan_of(curator, QUESTION)
    answer = answering.Answer.read(plan, contents["answer"], 0.95)
    spent: Any = curator.ledger.balance("visits").spent
    typed = float(epsilon)
    laws: list[Any] = [law for law, _ in answer.measures]
    if accounting == "pure":
        # Σ Δ1/scale is what this noise costs
        costs = [Fraction(each.sensitivity) / law.scale for each, law in zip(plan.measures, laws, strict=True)]
        assert sum(costs) == Fraction(typed)
        assert spent.epsilon == typed == release.charge["epsilon"]
        return
    # Σ Δ2²/2σ² is what this noise costs in ρ; the ledger holds at least that, and the conversion gives back ε
    rho = sum(Fraction(each.sensitivity) / (2 * law.variance) for each, law in zip(plan.measures, laws, strict=True))
    assert rho <= Fraction(spent.rho) * (1 + Fraction(1, 2**40))
    if typed > 1e-12:  # below, the ledger rounds up to its smallest amount
        assert rho >= Fraction(spent.rho) * (1 - Fraction(1, 2**20))
    assert release.charge["rho"] == pytest.approx(spent.rho) and release.charge["epsilon"] == typed
    if typed > 1e-4:
        assert zcdp_epsilon(spent.rho, 5e-7) == pytest.approx(typed, rel=1e-6)


def test_the_check_of_noise_against_charge_would_see_a_fifth_less_noise(tmp_path):
    """Teeth: with 20% less variance the sum above would be out of its bounds."""
    curator = protected(tmp_path, people(victim=True))
    plan = plan_of(curator, QUESTION)
    from dalenius.queries.rules.price import price_plan

    found = price_plan(plan, 0.5)
    assert found.rho is not None
    laws: list[Any] = [each.noise for each in found.mechanisms]
    rho = sum(
        Fraction(each.sensitivity) / (2 * law.variance * Fraction(4, 5))
        for each, law in zip(plan.measures, laws, strict=True)
    )
    assert rho > Fraction(found.rho) * (1 + Fraction(1, 2**40))


def test_a_tiny_price_gives_huge_noise_not_none(tmp_path):
    """At ε = 1e-9 the noise is of the order 10⁸; a system that rounds ε to "no noise" would answer near the truth.

    False alarm: P(|N(μ, σ²)| < 100) with σ > 4·10⁸ is at most 200/(σ√2π) < 10⁻⁶.
    """
    curator = protected(tmp_path, people(victim=True))
    release = curator.analyst("eve").ask("SELECT COUNT(*) FROM visits", epsilon=1e-9)
    error = release.noise_error[0][0]
    assert error is not None and error > 1.96 * 4e8
    assert abs(release.value) > 100


@pytest.mark.parametrize("name", ["confidence", "limits"])
@pytest.mark.parametrize("value", [math.nan, -1, 2, "x", True, [1]])
def test_other_arguments_of_the_wrong_kind_are_refused_too(curator, untouched, name, value):
    with nothing_charged(curator), pytest.raises(InputError):
        curator.analyst("eve").ask(QUESTION, epsilon=0.1, **{name: value})


@pytest.mark.parametrize(
    "given",
    [{"rows": value} for value in (math.nan, 0, -1, 1.5, "3", True)]
    + [{"groups": value} for value in (math.nan, 0, -1, 1.5)]
    + [{"totals": value} for value in ({"amount": math.nan}, {"amount": -1}, {"amount": "x"}, {"no": 1}, None)],
    ids=str,
)
def test_limits_of_the_wrong_kind_are_refused_too(curator, untouched, given):
    from dalenius.measuring.plan import Limits

    with nothing_charged(curator), pytest.raises(InputError):
        curator.analyst("eve").ask(QUESTION, epsilon=0.1, limits=Limits(**given))


@pytest.mark.parametrize("typed", ["-1", "0", "-0.0", "nan", "inf", "1e-320", "1e999", "True", "x", "", "1_0 0"])
def test_the_command_refuses_them_too(curator, untouched, capsys, typed):
    from dalenius.app.cli import build, run

    home = ["--home", str(curator.home), "--analyst", "eve", "--json"]
    with nothing_charged(curator):
        assert run(build(), ["ask", QUESTION, f"--epsilon={typed}", *home]) == 2
    assert '"code": "input.invalid"' in capsys.readouterr().out
