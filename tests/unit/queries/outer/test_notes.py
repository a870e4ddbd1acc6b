"""What releases say of themselves stays true of what is computed from them, in the words of the question."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dalenius.queries.ask import Ask
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.outer.showing import notes_of
from dalenius.queries.total_intervals import INCLUDED, NOT_INCLUDED


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    "question",
    [
        "SELECT region, COUNT(*) AS n, MAX(age) AS m, RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY region",
        "SELECT region, n - 1, m FROM (SELECT region, COUNT(*) AS n, MAX(age) AS m FROM people GROUP BY region)",
    ],
)
def test_columns_are_called_as_they_were_typed(shop, question):
    notes = shop.ana.ask(question, epsilon=2.5).notes
    assert any(note.startswith("n: The owner declared") for note in notes), notes
    assert not any("released " in note for note in (*notes, *shop.ana.preview(question, epsilon=2.5).notes))


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ("COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share", "`total_interval`) of n includes this; ±"),
        ("COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share", "and share has no such range."),
        ("COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share", NOT_INCLUDED),
        ("* FROM (SELECT region, COUNT(*) AS n", INCLUDED),
    ],
)
def test_what_is_computed_has_no_range_in_all(shop, items, told):
    question = f"SELECT {items} FROM orders GROUP BY region" + ") t" * items.startswith("*")
    found = plan_any(shop.ana._asker, Ask(question, epsilon=1.0))
    assert isinstance(found, OuterPlanned)
    (note,) = notes_of(found, [_cut_off((1.0, 2.0))])
    assert note.startswith("Much was cut off. ") and told in note


def test_a_column_without_a_range_in_all_is_not_said_to_have_one(shop):
    question = "SELECT SUM(amount) AS s, s / SUM(s) OVER () AS share, s - 1 AS less FROM orders GROUP BY status"
    found = plan_any(shop.ana._asker, Ask(question, epsilon=1.0))
    assert isinstance(found, OuterPlanned)
    assert NOT_INCLUDED in notes_of(found, [_cut_off(None)])[0]
    assert "of s includes this; ± does not, and share, less have no" in notes_of(found, [_cut_off((1.0, 2.0))])[0]


def _cut_off(total: tuple[float, float] | None) -> Any:
    """An answer that says that much was cut off, with this range in all in every cell."""
    table = SimpleNamespace(total_interval=[[total] * 9])
    return cast("Any", SimpleNamespace(notes=(f"Much was cut off. {INCLUDED}",), table=lambda: table))
