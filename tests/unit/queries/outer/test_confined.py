"""The outer part is an analyst's SQL: it runs in a process of its own, within limits, on released values alone."""

from __future__ import annotations

import pytest

from dalenius.errors import DaleniusError, EngineError, EngineTimeoutError
from dalenius.measuring.engines.duckdb import confined
from dalenius.queries.outer import computing, showing

GROUPED = "SELECT region, COUNT(*) AS n FROM orders GROUP BY region"
EPSILON = 0.45


def test_it_runs_in_a_process_and_after_the_charge(shop, charged, monkeypatch):
    """The one that runs before is given no values."""
    seen, real, before = [], confined.run, charged()

    def run(sql, *rest, **options):
        seen.append((charged() - before, [each["size"] for each in options["given"]], options["carry"] is not None))
        return real(sql, *rest, **options)

    monkeypatch.setattr(confined, "run", run)
    question = "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM orders WHERE amount > 3 GROUP BY region"
    release = shop.ana.ask(question, epsilon=EPSILON)
    assert seen == [(0, [0], False), (1, [4], True)]
    assert {row[2] for row in release.rows} == {sum(row[1] for row in release.rows)}
    assert all(errors[2] is not None for errors in release.noise_error)
    again = shop.ana.ask(question, epsilon=EPSILON)
    assert again.noise_error == release.noise_error, "other errors of the same answer"
    assert seen[2:] == [(1, [4], True)], "what is paid for needs no trial"


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT SUM(a.n * b.n) FROM ({GROUPED}) a, (SELECT UNNEST(RANGE(100000000)) AS n FROM ({GROUPED})) b",
        f"SELECT LENGTH(REPEAT('x', 1000000000)) + n FROM ({GROUPED})",
    ],
)
def test_too_much_memory_or_time_ends_the_process_alone(shop, charged, monkeypatch, question):
    monkeypatch.setattr(computing, "SECONDS", 1.0)
    shop.ana.ask(GROUPED, epsilon=EPSILON)
    before = charged()
    with pytest.raises((EngineError, DaleniusError)):
        shop.ana.ask(question, epsilon=EPSILON)
    assert charged() == before
    assert shop.ana.ask(f"SELECT MAX(n) FROM ({GROUPED})", epsilon=EPSILON).free


def test_copies_that_take_too_long_leave_the_answer_without_errors(shop, monkeypatch):
    monkeypatch.setattr(computing, "CARRY_SECONDS", 0.001)
    monkeypatch.setattr(showing, "_MOST_LOOPED", 400)
    shop.ana.ask(GROUPED, epsilon=EPSILON)
    question = f"SELECT region, n - (SELECT AVG(n) FROM ({GROUPED}) u) AS d FROM ({GROUPED}) t"
    release = shop.ana.ask(question, epsilon=EPSILON)
    assert len(release.rows) == 4 and all(errors[1] is None for errors in release.noise_error)
    assert any("without a margin in d" in note for note in release.notes)


@pytest.mark.usefixtures("inside")
def test_a_value_that_cannot_be_converted_is_charged_and_the_release_stays(shop):
    question = (
        "SELECT region, CAST(COUNT(*) + 1000 AS TINYINT) AS t, RANK() OVER () FROM orders WHERE amount > 4 GROUP BY 1"
    )
    with pytest.raises(DaleniusError, match=r"too large for its type|cannot be converted") as caught:
        shop.ana.ask(question, epsilon=EPSILON)
    assert caught.value.charge.epsilon == EPSILON
    assert shop.ana.ask(question.replace("TINYINT", "BIGINT"), epsilon=EPSILON).free


@pytest.mark.usefixtures("inside")
def test_dates_truth_values_and_missing_keys_keep_their_types(shop):
    inner = "SELECT smoker, region, COUNT(*) AS n FROM people GROUP BY ROLLUP (smoker, region)"
    release = shop.ana.ask(f"SELECT smoker, region IS NULL, TYPEOF(smoker), TYPEOF(n) FROM ({inner})", epsilon=EPSILON)
    assert {row[2:] for row in release.rows} == {("BOOLEAN", "BIGINT")}
    assert {row[:2] for row in release.rows} == {
        (None, True),
        (True, True),
        (False, True),
        (True, False),
        (False, False),
    }
    days = shop.ana.ask(
        "SELECT DATE_TRUNC('month', day) AS m, TYPEOF(m), LAG(m) OVER (ORDER BY m), COUNT(*) FROM orders GROUP BY m",
        epsilon=EPSILON,
    )
    assert {row[1] for row in days.rows} == {"DATE"} and days.rows[0][2] is None
    assert [row[0] for row in days.rows[:-1]] == [row[2] for row in days.rows[1:]]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(("took", "tries"), [(29.5, 1), (12.0, 2)])
def test_without_copies_it_is_tried_once_more_for_what_is_left_of_the_time(shop, monkeypatch, took, tries):
    inner = f"SELECT region, COUNT(*) AS n FROM orders WHERE amount > {took} GROUP BY region"
    shop.ana.ask(inner, epsilon=EPSILON)
    now, seconds = [0.0], []

    def run(*_, **options):
        seconds.append(options["seconds"])
        now[0] += took
        raise EngineTimeoutError("It took too long.", why="It did.", fix="Ask for less.")

    monkeypatch.setattr("dalenius.queries.outer.computing.confined.run", run)
    monkeypatch.setattr("dalenius.queries.outer.computing.monotonic", lambda: now[0])
    with pytest.raises(EngineTimeoutError):
        shop.ana.ask(f"SELECT region, n * n FROM ({inner})", epsilon=EPSILON)
    assert seconds == [30.0, 30.0 - took][:tries]
