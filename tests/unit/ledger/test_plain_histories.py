"""Histories of before sampled noise: the same questions are written down byte for byte as they were then."""

import hashlib
import json
import random
import re
import sqlite3
from typing import Any

from dalenius.accounting.events import Approx, Composed, DiscreteGaussian, Event, Pure, Repeated, Zcdp
from dalenius.accounting.units import whole_units
from dalenius.errors import DaleniusError
from dalenius.ledger import Accounting, Budget, Claim, Ledger, Request, verify

# Of what the release before wrote for the same questions. A price ends in digits that are the processor's: they are
# put in words before.
WRITTEN = "a327eeb0f9844f617d08d18604c24daea992f58be6e42d9ef75727befb0c1b4f"
PRICES = (0.01, 0.1, 0.37, 1.0)
BUDGETS = {
    "students": Budget(3.0, 1e-6),
    "visits": Budget(1.0, 1e-5, selection=0.75, period="month"),
    "exact": Budget(2.0, accounting=Accounting.PURE),
}


def lived(home):
    """A ledger with two hundred questions of all kinds there were, many of them refused."""
    ledger, draw = Ledger.create(home), random.Random(25)
    for name, budget in BUDGETS.items():
        ledger.set_budget(name, budget)
        ledger.set_allotment(name, "ana", budget.epsilon / 2)
        ledger.set_allotment(name, "bob", 0.9 * budget.epsilon)
    for number in range(200):
        name, epsilon, delta = draw.choice(list(BUDGETS)), draw.choice(PRICES), 0.0
        budget, rho = BUDGETS[name], draw.choice([2.0**-20, 2.0**-18, 2.0**-5])
        if budget.accounting is Accounting.PURE:
            event: Event = Pure(epsilon)
        else:
            delta = draw.choice([0.0, 0.0, 1e-9])
            parts: list[Event] = [Zcdp(rho / 4, delta), Repeated(Zcdp(rho / 8), 2), DiscreteGaussian(2 / rho)]
            kinds: list[Event] = [Zcdp(rho, delta), Composed(tuple(parts)), Approx(epsilon / 20, delta)]
            event = draw.choice(kinds)
        periods = tuple(draw.sample(["2026-01", "2026-02", "2026-03"], 2)) if budget.period else ("",)
        more: dict[str, Any] = {"shareable": draw.random() < 0.5, "delta_chosen": draw.random() < 0.5}
        key = f"q{draw.randrange(60)}"
        request = Request(name, draw.choice(["ana", "bob", ""]), key, epsilon, event, delta, key, periods, **more)
        try:
            if draw.random() < 0.1:
                claim = ledger.charge(request)
                if isinstance(claim, Claim):
                    ledger.fail(claim)
            else:
                ledger.ask(request, lambda claim: b"42")
        except DaleniusError:
            pass
        if number == 120:
            ledger.set_budget("students", Budget(4.0, 1e-6))
            ledger.set_allotment("visits", "ana", 0.8)
    return ledger


def in_words(body):
    """With a name for each price."""
    for name, budget in BUDGETS.items():
        for epsilon in PRICES if budget.accounting is Accounting.ZCDP else ():
            rho = budget.filter().price(epsilon).rho
            units = f'"units":["{whole_units(rho)}",'
            body = body.replace(f'"rho":{rho!r},', f'"rho":"{name} {epsilon}",')
            body = body.replace(units, f'"units":["{name} {epsilon}",')
    return body


def test_what_is_written_is_byte_for_byte_what_it_was(tmp_path):
    ledger = lived(tmp_path / "home")
    assert verify(ledger).charges > 60
    connection = sqlite3.connect(ledger.home / "ledger.sqlite")
    query = "SELECT number, kind, body FROM entries WHERE kind IN ('charge', 'failure', 'answer') ORDER BY number"
    entries = connection.execute(query).fetchall()
    totals = {
        (*place,): (int(loss), int(delta), count)
        for *place, loss, delta, count in connection.execute("SELECT * FROM totals")
    }
    connection.close()
    written = "\n".join(f"{number} {kind} {in_words(body)}" for number, kind, body in entries)
    assert len(set(re.findall('"rho":"[^"]*"', written))) == 7  # of the eight prices, one is more than any budget has
    assert hashlib.sha256(written.encode()).hexdigest() == WRITTEN
    added: dict[tuple[str, str, str], list[int]] = {}
    for _, kind, body in entries:
        data = json.loads(body)
        for period in data["periods"] if kind == "charge" else ():
            for analyst in [data["analyst"]] if "shares" in data else {"", data["analyst"]}:
                total = added.setdefault((data["dataset"], period, analyst), [0, 0, 0])
                for at, more in enumerate((*map(int, data["units"]), 1)):
                    total[at] += more
    assert {place: tuple(total) for place, total in added.items()} == totals
