"""A small ledger to work on."""

from pathlib import Path

import pytest

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The students' ledger: ε = 3, δ = 1e-6; ana and bob may spend 2 each."""
    made = Ledger.create(tmp_path / "home")
    made.set_budget("students", Budget(3.0, 1e-6, unit="student_id"))
    made.set_allotment("students", "ana", 2.0)
    made.set_allotment("students", "bob", 2.0)
    return made


@pytest.fixture
def request_for():
    """`request_for(key, epsilon, analyst)`."""

    def requesting(key="count", epsilon=0.5, analyst="ana", **more):
        return Request("students", analyst, key, epsilon, Zcdp(1e-9, more.get("delta", 0)), question=key, **more)

    return requesting
