"""Adaptive mixes of questions and training on one ledger never exceed a cap, by a computation that shares no code.

What is added up is read from the entries as JSON. Sampled noise is the law on the lattice itself, in both directions,
at any order and not only whole ones; ε is the least over orders, by Proposition 12 of Canonne, Kamath & Steinke (2020).
"""

import json
import math
import random
import sqlite3
from contextlib import suppress
from fractions import Fraction

import numpy as np
from scipy import optimize
from tests.conftest import LONG

from dalenius.accounting.events import Composed, SampledGaussian, Zcdp
from dalenius.accounting.sampled_discrete import calibrate_sampled, sampling_rate
from dalenius.errors import BudgetError
from dalenius.ledger import Budget, Ledger, Request, verify

MIXES = 1000 if LONG else 50
DELTA = 1e-6


def step_cumulant(rate, variance, order):
    """ln E[(μ/μ₀)^α] of one step, the worse of both directions, on the whole numbers; a unit adds 1."""
    reach = math.ceil(order + 2 + 10 * math.sqrt(variance))
    stride = max(1, math.isqrt(int(variance)) // 8)  # of a lattice much finer than the noise, a part is as good
    places = np.arange(-reach // stride, reach // stride + 2) * float(stride)
    logs = -places * places / (2 * variance)
    logs -= math.log(np.exp(logs).sum())
    ratio = (2 * places - 1) / (2 * variance)
    far = ratio + np.log(rate + (1 - rate) * np.exp(-np.maximum(ratio, 1.0)))
    near = np.log1p(rate * np.expm1(np.minimum(ratio, 1.0))) if rate < 1 else ratio
    mixed = np.where(ratio > 1, far, near)
    found = []
    for power in (order, 1 - order):
        exponent = power * mixed
        if np.abs(exponent).max() < 1e-2:  # E[e^x − 1 − …], whose leading terms are 0 in sum: E[μ/μ₀] is 1
            found.append(math.log1p(float((np.exp(logs) * (np.expm1(exponent) - power * np.expm1(mixed))).sum())))
        else:
            top = float((logs + exponent).max())
            found.append(top + math.log(float(np.exp(logs + exponent - top).sum())))
    return max(found)


class Told:
    """What one total has let pass, by the entries alone."""

    def __init__(self):
        self.rho, self.delta = Fraction(0), Fraction(0)
        self.steps: dict[tuple[float, float], int] = {}  # by rate and σ²

    def add(self, charge):
        """A charge: its ρ, or the parts of its event where units were sampled."""
        self.delta += Fraction(charge["delta"])
        event = charge["event"]["event"]
        parts = event["events"] if event["kind"] == "composed" else [event]
        if not any(part["kind"] == "sampled" for part in parts):
            self.rho += Fraction(charge["rho"])
            return
        for part in parts:
            if part["kind"] == "sampled":
                ratio = Fraction(part["variance"]) / part["squared_sensitivity"]
                place = float(Fraction(part["rate"])), float(ratio)
                self.steps[place] = self.steps.get(place, 0) + part["steps"]
            else:
                self.rho += Fraction(part["rho"])

    def epsilon(self, delta):
        """The least ε at δ over all orders."""

        def at(log_less):
            less = math.exp(log_less)
            order = 1 + less
            total = float(self.rho) * order * less
            total += sum(steps * step_cumulant(*place, order) for place, steps in self.steps.items())
            return (total - math.log(delta) + less * math.log1p(-1 / order) - math.log(order)) / less

        ends = math.log(0.3), math.log(2000)
        return float(optimize.minimize_scalar(at, bounds=ends, method="bounded", options={"xatol": 1e-6}).fun)


def priced(draw, budget, epsilon, cap):
    """An event for ε: a question, a training, or a training with a count."""
    rho = budget.filter().price(epsilon).rho
    if draw.random() < 0.4:
        return Zcdp(rho), 0.0
    rate, steps = sampling_rate(draw.choice([0.002, 0.01, 0.05, 0.3, 1.0])), draw.choice([1, 30, 300, 3000])
    part = Zcdp(rho * draw.choice([0.01, 0.3])) if draw.random() < 0.3 else None
    left = math.nextafter(rho - part.rho, 0.0) if part else rho
    least = draw.choice([Fraction(1), Fraction(1, 2)])
    variance = calibrate_sampled(rate, steps, left, budget.sampling_orders(epsilon, cap), least=least)
    delta = draw.choice([0.0, 1e-9, 1e-8])
    event = SampledGaussian(rate, variance * 2**20, 2**20, steps, draw.choice([1, 100]), delta)
    return (Composed((event, part)) if part else event), delta


def mix(ledger, draw, name):
    """Some questions and trainings, each after seeing what is left and random answers; caps change on the way."""
    budget = Budget(draw.choice([0.5, 1.0, 3.0, 6.0]), DELTA)
    allotted = {"": budget.epsilon, "ana": budget.epsilon * draw.choice([0.5, 1.0])}
    ledger.set_budget(name, budget)
    ledger.set_allotment(name, "ana", allotted["ana"])
    for number in range(draw.randrange(4, 14)):
        analyst = draw.choice(["ana", "ana", ""])
        balance = ledger.balance(name, analyst)
        left, cap = balance.remaining_epsilon, allotted[analyst]
        epsilon = draw.choice([left, left / 2, 0.05, 0.2, cap / 3, cap]) if left > 0 else 0.05
        if draw.random() < 0.1:
            allotted["ana"] *= draw.choice([0.7, 1.5])
            ledger.set_allotment(name, "ana", allotted["ana"])
        elif draw.random() < 0.1:
            budget = Budget(budget.epsilon * draw.choice([0.8, 1.5]), DELTA)
            allotted[""] = budget.epsilon
            ledger.set_budget(name, budget)
        elif epsilon > 0.04:
            event, delta = priced(draw, budget, epsilon, cap)
            with suppress(BudgetError):
                ledger.charge(Request(name, analyst, f"{number}", epsilon, event, delta))


def test_no_mix_exceeds_a_cap_of_its_moment(tmp_path):
    ledger, draw = Ledger.create(tmp_path / "home"), random.Random(1701)
    for number in range(MIXES):
        mix(ledger, draw, f"mix {number}")
    connection = sqlite3.connect(ledger.home / "ledger.sqlite")
    entries = [(kind, json.loads(body)) for kind, body in connection.execute("SELECT kind, body FROM entries")]
    connection.close()
    told: dict[tuple[str, str], Told] = {}
    caps: dict[tuple[str, str], float] = {}
    full, trained, changed = 0, 0, set()
    due: dict[tuple[str, str], bool] = {}  # what was charged since the last check, by total
    for kind, data in [*entries, ("end", {})]:
        touched = set()
        if kind == "budget":
            touched.add((data["dataset"], ""))
        elif kind == "allotment":
            touched.add((data["dataset"], data["analyst"]))
        for place in touched if kind != "end" else set(due):  # before its cap changes: the cap of the last charge
            if due.pop(place, None):
                total, cap = told[place], caps[place]
                epsilon = total.epsilon(DELTA / 2)
                assert epsilon <= cap * (1 + 1e-9), (place, epsilon, cap)
                assert total.delta <= DELTA / 2
                full += epsilon > 0.95 * cap and bool(total.steps)
        if kind == "budget":
            changed |= {data["dataset"]} if (data["dataset"], "") in caps else set()
            caps[data["dataset"], ""] = data["budget"]["epsilon"]
        elif kind == "allotment":
            caps[data["dataset"], data["analyst"]] = data["epsilon"]
        elif kind == "charge":
            trained += "losses" in data
            for who in {"", data["analyst"]}:
                told.setdefault((data["dataset"], who), Told()).add(data)
                due[data["dataset"], who] = True
    assert trained > 2 * MIXES and full > MIXES / 4 and len(changed) > MIXES / 10
    assert verify(ledger).charges > 3 * MIXES


def test_the_independent_computation_sees_an_overspent_budget():
    budget = Budget(1.0, DELTA)
    rate, told = sampling_rate(0.01), Told()
    variance = calibrate_sampled(rate, 3000, budget.filter().price(1.0).rho, budget.sampling_orders(1.0))
    event = {"kind": "sampled", "rate": str(rate), "variance": str(variance), "squared_sensitivity": 1, "steps": 3000}
    told.add({"delta": 0.0, "event": {"event": event}})
    assert 0.985 < told.epsilon(DELTA / 2) <= 1.0
    told.add({"delta": 0.0, "event": {"event": event | {"steps": 100}}})
    assert told.epsilon(DELTA / 2) > 1.0
