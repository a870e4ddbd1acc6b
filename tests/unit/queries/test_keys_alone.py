"""Keys alone: listed for nothing where they are public, and refused with what to type where they are not."""

from __future__ import annotations

import pytest
from tests import typed
from tests.shop import Shop

from dalenius.errors import DaleniusError, QuestionRefusedError
from dalenius.queries.keys_alone import NOTE


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("keys"))


LISTED = {
    "SELECT DISTINCT region FROM people": [("n",), ("s",), ("e",), ("w",)],
    "SELECT region AS r FROM people GROUP BY region ORDER BY r DESC LIMIT 2": [("w",), ("s",)],
    "SELECT region FROM people GROUP BY 1 HAVING region <> 'n'": [("s",), ("e",), ("w",)],
    "SELECT DISTINCT sex, UPPER(region) AS r FROM people WHERE region = 'n' AND age > 3": (
        [("f", "N"), ("m", "N"), ("x", "N")]
    ),
    "SELECT DISTINCT r.country FROM people p JOIN regions r ON r.code = p.region ORDER BY 1": [("A",), ("B",), ("C",)],
    "SELECT DISTINCT year(day) AS y, 1 AS one FROM orders": [(2024, 1), (2025, 1)],
    "SELECT DISTINCT name FROM people WHERE name IN ('nobody', 'bob')": [("bob",), ("nobody",)],
}


@pytest.mark.parametrize("question", LISTED)
def test_public_keys_are_listed_for_nothing_and_without_a_look(shop, question, monkeypatch):
    from dalenius.queries import answering

    def looked(*_: object, **__: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr(answering, "measure_plan", looked)
    before = shop.ana.budget()
    release = shop.ana.ask(question)
    assert list(release.rows) == LISTED[question]
    assert release.free and release.charge["epsilon"] == 0 and release.notes == (NOTE,)
    assert shop.ana.budget() == before
    assert shop.ana.preview(question).public


def test_other_keys_are_refused_with_what_to_type(shop):
    for question in (
        "SELECT DISTINCT name FROM people WHERE age > 3",
        "SELECT name FROM people WHERE age > 3 GROUP BY 1",
    ):
        with pytest.raises(QuestionRefusedError) as caught:
            shop.ana.ask(question, epsilon=1.0)
        assert "SELECT name, COUNT(*) FROM people WHERE age > 3 GROUP BY" in caught.value.fix
        assert caught.value.charge.epsilon == 0


@pytest.mark.parametrize(
    "question",
    [
        "SELECT DISTINCT * FROM people",
        "SELECT DISTINCT person_id FROM orders",
        "SELECT DISTINCT ON (region) region, name FROM people",
        "SELECT DISTINCT name FROM people QUALIFY row_number() OVER (PARTITION BY region) = 1",
        "SELECT name FROM people",
        "SELECT DISTINCT name FROM (SELECT name FROM people LIMIT 3)",
        "SELECT DISTINCT region FROM people UNION SELECT region FROM people",
    ],
)
def test_rows_and_people_are_still_refused(shop, question):
    with pytest.raises(DaleniusError):
        shop.ana.ask(question, epsilon=1.0)
