"""Notes and reports on limits have the names that were typed, never those of plans."""

from __future__ import annotations

import re

import pytest
from tests import typed
from tests.shop import Shop

from dalenius.queries.note_words import _replaced

INNER = re.compile(r"per unit|\ba\d\b|\bdiv\(|finite\(|\"\w+\.\w+\"|nullif\(|date_diff\(")
PER_PERSON = "(SELECT person_id, COUNT(*) AS n, MIN(day) AS first FROM orders GROUP BY person_id)"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("notes"))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"SELECT MAX(n) FROM {PER_PERSON}", "MAX(COUNT(*) of each person_id) is a private extreme"),
        (
            "SELECT MAX(o.quantity) FROM orders o JOIN people p USING (person_id)",
            "MAX(o.quantity) is a private extreme",
        ),
        ("SELECT MODE(status) FROM orders JOIN people USING (person_id)", "MODE(orders.status) is the value"),
        ("SELECT SUM(amount / NULLIF(quantity, 0)) FROM orders", "amount / NULLIF(quantity, 0) is brought between"),
        (
            f"SELECT AVG(DATE_DIFF('day', p.born, f.first)) FROM people p JOIN {PER_PERSON} f USING (person_id)",
            "",
        ),
    ],
)
def test_notes_and_limits_have_the_names_that_were_typed(sql, said, shop):
    release = shop.ana.ask(sql, epsilon=1e6)
    told = [*release.notes, *(each["measure"] for each in release.limits)]
    told += [*shop.ana.preview(sql, epsilon=1e6).notes, *shop.ana.explain(sql).notes]
    assert said in " ".join(release.notes)
    assert not [each for each in told if INNER.search(each)]


def test_what_was_put_in_is_not_looked_into_again():
    assert _replaced('the sum of "t.x" and "u.y"', [('"t.x"', '"u.y"'), ('"u.y"', "z")]) == 'the sum of "u.y" and z'
