# ruff: noqa: E501 (one shape, one line)
"""What is asked of a question with an outer part is the plain question; the rest is computed, and never charged."""

from __future__ import annotations

import pytest

from dalenius.errors import BudgetError, DaleniusError
from dalenius.queries.ask import Ask
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.planning import Planned

N = "SELECT region, COUNT(*) AS n FROM orders WHERE status = 'open' GROUP BY region"
# (the question, the plain question that it asks)
SAME = [
    ("SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () FROM orders WHERE status = 'open' GROUP BY region", N),
    ("SELECT region AS r, RANK() OVER (ORDER BY COUNT(*)) FROM orders WHERE status = 'open' GROUP BY r", N),
    ("SELECT COUNT(*), LAG(COUNT(*)) OVER (ORDER BY region) FROM orders WHERE status = 'open' GROUP BY region", N),
    ("SELECT DISTINCT COUNT(*) FROM orders WHERE 'open' = status GROUP BY region", N),
    ("SELECT COUNT(*) FROM orders AS o WHERE status = 'open' GROUP BY o.region QUALIFY SUM(COUNT(*)) OVER () > 3", N),
    ("SELECT COUNT(*), SUM(COUNT(*)) OVER () FROM orders GROUP BY ALL", "SELECT COUNT(*) FROM orders"),
    (f"SELECT MAX(n) FROM ({N})", N),
    (f"WITH a AS ({N}), b AS (SELECT * FROM a) SELECT SUM(n) FROM b", N),
    ("WITH o AS (SELECT * FROM orders WHERE status = 'open') SELECT region, COUNT(*), ROW_NUMBER() OVER () FROM o GROUP BY 1",
     "SELECT region, COUNT(*) FROM (SELECT * FROM orders WHERE status = 'open') GROUP BY 1"),
    (f"{N} UNION ALL SELECT 'all', SUM(n) FROM ({N})", N),
    ("SELECT AVG(n), RANK() OVER (ORDER BY AVG(n)) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id)",
     "SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id)"),
    ("SELECT region, SUM(AVG(amount)) OVER (), COUNT(*) FROM orders GROUP BY ROLLUP (region)",
     "SELECT region, AVG(amount), COUNT(*) FROM orders GROUP BY ROLLUP (region)"),
    ("SELECT p.region, COUNT(*), SUM(COUNT(*)) OVER () FROM people p JOIN orders o USING (user_id) GROUP BY p.region",
     "SELECT p.region, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY p.region"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "plain"), SAME, ids=range(len(SAME)))
def test_what_is_asked_is_the_plain_question(shop, question, plain):
    found, usual = (plan_any(shop.ana._asker, Ask(each, epsilon=1.0)) for each in (question, plain))
    assert isinstance(found, OuterPlanned) and isinstance(usual, Planned)
    (part,) = found.parts
    assert part.plan.canonical() == usual.plan.canonical()
    assert part.plan.key("1") == usual.plan.key("1")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id)",
        "SELECT region, COUNT(*) AS n FROM orders GROUP BY region HAVING n > 3 ORDER BY n DESC LIMIT 2",
        "SELECT COUNT(*) FROM (SELECT user_id FROM orders UNION ALL SELECT user_id FROM people) u",
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id)",
        "WITH t AS (SELECT user_id, MAX(amount) AS m FROM orders GROUP BY user_id) SELECT SUM(m) FROM t",
    ],
)
def test_what_was_read_before_is_read_as_before(shop, question):
    assert isinstance(plan_any(shop.ana._asker, Ask(question, epsilon=1.0)), Planned)


@pytest.mark.usefixtures("inside")
def test_another_outer_part_is_the_same_question_in_the_ledger(shop, charged):
    first = shop.ana.ask(SAME[0][0], epsilon=0.31)
    assert not first.free and first.charge["epsilon"] == 0.31
    before = charged()
    for question, plain in SAME[1:5]:
        assert plain == N
        release = shop.ana.ask(question, epsilon=0.31)
        assert release.free and release.charge["epsilon"] == 0 and release.receipt == first.receipt
        assert "free: follows from an earlier answer" in str(release)
    plainly = shop.ana.ask(N, epsilon=0.31)
    assert plainly.free and charged() == before
    assert [row[1] for row in shop.ana.ask(f"SELECT * FROM ({N})", epsilon=0.31).rows] == [
        row[1] for row in plainly.rows
    ]


@pytest.mark.usefixtures("inside")
def test_a_column_that_is_shown_as_released_keeps_its_own_errors(shop, monkeypatch):
    # by itself: others ask the like here
    monkeypatch.setattr("dalenius.queries.known.sharpening.sharpen", lambda *_: None)
    question = "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS all_of_them FROM orders GROUP BY region"
    release, plain = (
        shop.ana.ask(question, epsilon=0.9),
        shop.ana.ask("SELECT region, COUNT(*) AS n FROM orders GROUP BY region", epsilon=0.9),
    )
    for part in ("noise_error", "interval", "total_interval"):
        assert [row[1] for row in getattr(release, part)] == [row[1] for row in getattr(plain, part)]
    assert release.clipping[1] == plain.clipping[1] and release.keys == (True, False, False)
    assert all(row[2] is None for row in release.total_interval) and all(row[2] > 0 for row in release.noise_error)
    # a sum of four independent counts has twice the noise of one
    assert release.noise_error[0][2] == pytest.approx(2 * release.noise_error[0][1], rel=0.3)


@pytest.mark.usefixtures("inside")
def test_a_rank_has_an_interval_of_ranks(shop):
    question = "SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS r FROM orders GROUP BY region"
    release = shop.ana.ask(question, epsilon=0.9)
    for row, errors in zip(release.rows, release.interval, strict=True):
        low, high = errors[1]
        assert 1 <= low <= row[1] <= high <= 4


@pytest.mark.usefixtures("inside")
def test_cells_without_an_error_say_so(shop):
    question = f"SELECT n > 3 AS many, COUNT(*) AS regions FROM ({N}) GROUP BY many"
    release = shop.ana.ask(question, epsilon=0.31)
    assert all(row == (None, None) for row in release.noise_error)
    assert any("without a margin in regions" in note and "merged by noisy values" in note for note in release.notes)


@pytest.mark.usefixtures("inside")
def test_what_is_read_twice_from_one_release_moves_together(shop):
    question = f"SELECT region, a.n - b.n AS nothing FROM ({N}) a JOIN ({N} HAVING region <> 'n') b USING (region)"
    release = shop.ana.ask(question, epsilon=0.31)
    assert (
        sorted(release.rows) == [("e", 0), ("s", 0), ("w", 0)] and [row[1] for row in release.noise_error] == [0.0] * 3
    )


@pytest.mark.usefixtures("inside")
def test_rows_that_cannot_be_told_apart_have_no_error(shop):
    release = shop.ana.ask(f"SELECT region, UNNEST([1, 2]) * n AS x FROM ({N})", epsilon=0.31)
    assert len(release.rows) == 8 and all(errors[1] is None for errors in release.noise_error)
    assert any("without a margin in x" in note and "cannot be told apart" in note for note in release.notes)


@pytest.mark.usefixtures("inside")
def test_words_and_truth_values_say_that_they_may_be_others(shop):
    release = shop.ana.ask(
        f"SELECT region, n > 3 AS many, CASE WHEN n > 3 THEN 'a' ELSE 'b' END AS x FROM ({N})", epsilon=0.31
    )
    assert "With other noise many, x could be other values; not being numbers, they have no margin." in release.notes
    assert release.keys == (True, False, False) and release.to_arrow().column_names[:3] == [
        "region",
        "many",
        "many_noise_error",
    ]


# --- several at one price


TWO = "SELECT 'open' AS what, COUNT(*) AS n FROM orders WHERE status = 'open' UNION ALL SELECT 'all', COUNT(*) FROM people"


@pytest.mark.usefixtures("inside")
def test_parts_share_one_price_and_are_one_charge(shop, charged):
    before = charged()
    release = shop.ana.ask(TWO, epsilon=0.77)
    assert charged() == before + 1 and release.charge["epsilon"] == 0.77
    assert [row[0] for row in release.rows] == ["open", "all"]
    assert shop.ana.ask(TWO, epsilon=0.77).free
    turned = " UNION ALL ".join(reversed(TWO.split(" UNION ALL ")))
    again = shop.ana.ask(turned, epsilon=0.77)
    assert again.free and sorted(row[1] for row in again.rows) == sorted(row[1] for row in release.rows)
    # each has half of the price: √2 times the noise that it would have alone
    (alone,) = shop.ana.preview("SELECT COUNT(*) FROM people", epsilon=0.77).choices[0].noise_error
    assert release.noise_error[1][1] == pytest.approx(2**0.5 * alone, rel=0.35)


@pytest.mark.usefixtures("inside")
def test_a_part_that_is_refused_refuses_all_for_nothing(shop, charged):
    before = charged()
    with pytest.raises(DaleniusError):
        shop.ana.ask(f"{TWO} UNION ALL SELECT 'x', SUM(note) FROM orders", epsilon=0.5)
    assert charged() == before


@pytest.mark.usefixtures("inside")
def test_parts_that_cost_too_much_together_are_not_charged_in_part(shop, charged):
    before = charged()
    with pytest.raises(BudgetError):
        shop.ana.ask(TWO, epsilon=1e9)
    assert charged() == before


def test_a_preview_is_known_when_the_same_would_be_free(shop, monkeypatch):
    from dalenius.measuring.engines.duckdb import confined

    monkeypatch.setattr(confined, "run", lambda *_, **__: pytest.fail("a preview started a process"))
    preview = shop.ana.preview(TWO, epsilon=5.0)
    assert preview.columns == ("what", "n") and not preview.choices[0].known
    assert preview.choices[0].noise_error == (None, None) and "Computed from the release" in preview.notes[-1]
    assert "then, computed from the release: n" in preview.plan
    shown = shop.ana.preview(
        "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY n) FROM orders GROUP BY 1", epsilon=1.0
    )
    plain = shop.ana.preview("SELECT region, COUNT(*) AS n FROM orders GROUP BY 1", epsilon=1.0, fresh=True)
    assert shown.choices[0].noise_error == (*plain.choices[0].noise_error, None)
    assert len(shop.ana.preview(TWO).choices) == 3
