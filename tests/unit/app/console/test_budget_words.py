"""What the page about budgets says in words."""

from dalenius.app.console.pages.budget import _buys, _Found
from dalenius.app.views.balances import totals
from dalenius.ledger import Budget, Ledger
from dalenius.ledger.budgets import Accounting


def test_the_page_says_how_many_questions_can_still_find_their_keys(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("a", Budget(3.0, 1e-6))
    ledger.set_budget("b", Budget(3.0, accounting=Accounting.PURE))
    zcdp, pure = totals(ledger)
    words = _buys(_Found("a"), zcdp)
    assert "159 questions of ε = 0.2" in words
    assert "And of questions that find their keys, about 2,000 of ε = 0.05, or 159 of ε = 0.2" in words
    assert words.endswith("(δ ≤ 5e-07 is left for them).")
    assert "find their keys" not in _buys(_Found("b"), pure)
