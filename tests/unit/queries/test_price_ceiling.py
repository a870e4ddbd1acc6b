"""A price by accuracy is paid up to a ceiling: the ε that is named beside the error, or a quarter of what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.analyst import Analyst, resuming
from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.errors import BudgetError, EngineFailedError, InputError
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.queries.rules.clause import settle_price

POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.ana]
epsilon = 2.0
[analysts.ben]
epsilon = 40.0
[columns.age]
type = "integer"
bounds = [0, 99]
[contribution]
rows = 20
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
CHEAP, DEAR, OUT_OF_REACH = 400.0, 110.0, 20.0  # of ana's ε = 2: below a quarter, above it, more than all


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ceiling")
    pq.write_table(pa.table({"person": range(3000), "age": [20] * 3000}), folder / "people.parquet")
    (folder / "people.toml").write_text(POLICY)
    return folder


@pytest.fixture
def curator(laid: Path, tmp_path: Path) -> Curator:
    for name in ("people.parquet", "people.toml"):
        (tmp_path / name).write_bytes((laid / name).read_bytes())
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "people.toml")
    return curator


@pytest.fixture
def ana(curator: Curator) -> Analyst:
    return curator.analyst("ana")


def price(analyst: Analyst, error: Any, **more: Any) -> float:
    (choice,) = analyst.preview(COUNT, error=error, **more).choices
    return choice.epsilon


def refused(analyst: Analyst, error: Any, **more: Any) -> InputError:
    before = analyst.budget()
    with pytest.raises(InputError) as found:
        analyst.ask(COUNT, error=error, **more)
    assert analyst.budget() == before and found.value.charge.epsilon == 0
    return found.value


def test_a_price_above_a_quarter_of_what_is_left_is_refused_with_what_to_type(ana):
    costs = price(ana, DEAR)
    assert 0.5 < costs < 2
    error = refused(ana, DEAR)
    assert f"ε = {costs:g}, more than a quarter" in error.message and f"--epsilon {costs:g}" in error.fix
    assert ana.ask(COUNT, error=DEAR, epsilon=costs).charge["epsilon"] == costs


def test_a_price_within_a_quarter_needs_no_ceiling(ana):
    assert ana.ask(COUNT, error=CHEAP).charge["epsilon"] == price(ana, CHEAP) < 0.5


def test_the_ceiling_is_the_most_and_not_the_price(ana):
    costs = price(ana, CHEAP)
    assert ana.ask(COUNT, error=CHEAP, epsilon=1.9).charge["epsilon"] == costs


def test_a_price_above_what_was_named_is_refused_however_small_it_is(ana):
    costs = price(ana, CHEAP)
    error = refused(ana, CHEAP, epsilon=0.99 * costs)
    assert f"ε = {costs:g}, more than the ε = {0.99 * costs:g} that you would pay" in error.message
    for wrong in (0, -1, float("nan"), True, "1"):
        refused(ana, CHEAP, epsilon=wrong)


def test_a_preview_shows_the_price_and_says_that_asking_needs_it_named(ana):
    found = ana.preview(COUNT, error=DEAR)
    (note,) = [each for each in found.notes if "quarter" in each]
    assert f"--epsilon {found.choices[0].epsilon:g}." in note
    assert not any("quarter" in each for each in ana.preview(COUNT, error=CHEAP).notes)
    assert not any("quarter" in each for each in ana.preview(COUNT, error=DEAR, epsilon=1.9).notes)
    assert any("that you would pay" in each for each in ana.preview(COUNT, error=DEAR, epsilon=0.1).notes)
    assert not any("quarter" in each for each in ana.preview(COUNT, error=OUT_OF_REACH).notes)  # it would not help
    with pytest.raises(InputError):
        ana.preview(COUNT, error=DEAR, epsilon=-1)


def test_a_price_has_no_more_digits_than_are_shown(ana):
    for error in (CHEAP, DEAR, 137.0):
        assert price(ana, error) == float(f"{price(ana, error):.4g}")


def test_an_answer_that_is_known_is_free_whatever_is_left_and_whatever_was_named(ana):
    paid = ana.ask(COUNT, error=DEAR, epsilon=2.0)
    assert paid.charge["epsilon"] > 0.25 * paid.remaining["analyst"]["epsilon"]
    for more in ({}, {"epsilon": 1e-3}, {"epsilon": 100.0}):
        assert ana.ask(COUNT, error=DEAR, **more).free
        assert ana.ask(COUNT, error=2 * DEAR, **more).free  # exact enough for that, too
        (choice,) = (found := ana.preview(COUNT, error=DEAR, **more)).choices
        assert choice.known and not any("quarter" in each or "would pay" in each for each in found.notes)


def test_more_than_is_left_is_told_as_for_any_price(ana):
    with pytest.raises(BudgetError) as found:
        ana.ask(COUNT, error=OUT_OF_REACH)
    assert found.value.fits is not None and found.value.fits.epsilon == pytest.approx(2.0)


def test_what_another_analyst_spends_changes_nothing(curator, ana):
    before = str(refused(ana, DEAR))
    curator.analyst("ben").ask(COUNT, epsilon=10.0)
    curator.analyst("ben").ask(COUNT, error=DEAR)  # far less than a quarter of 40
    assert str(refused(ana, DEAR)) == before


def test_the_same_request_again_is_the_same_though_less_is_left(ana):
    sent: dict[str, Any] = {"error": CHEAP, "idempotency_key": "one"}
    first = ana.ask(COUNT, **sent)
    ana.ask(COUNT.replace("*", "age"), epsilon=first.remaining["analyst"]["epsilon"])  # nothing is left
    again = ana.ask(COUNT, **sent)
    assert again.free and again.rows == first.rows
    assert resuming(ana, public=False).ask(COUNT, **sent).rows == first.rows  # as a job that is taken up


def test_the_same_request_again_is_told_of_its_failure_and_not_refused_as_if_it_were_new(ana, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise EngineFailedError("m", why="w", fix="f")

    monkeypatch.setattr(DuckDB, "run", broken)
    wish: dict[str, Any] = {"error": 362.0, "idempotency_key": "one"}  # just below a quarter
    costs = price(ana, wish["error"])
    with pytest.raises(EngineFailedError) as first:
        ana.ask(COUNT, **wish)
    assert first.value.charge.epsilon == costs > 0.25 * ana.budget()["people"].remaining_epsilon
    with pytest.raises(EngineFailedError, match="failed when it was first asked"):
        ana.ask(COUNT, **wish)


def test_the_command_line_takes_both_and_refuses_for_nothing(curator, capsys):
    def said(*words: str) -> tuple[int, Any]:
        code = run(build(), [*words, "--analyst", "ana", "--home", str(curator.home), "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, found = said("preview", COUNT, "--error", f"{DEAR:g}")
    costs = found["choices"][0]["epsilon"]
    assert code == 0 and any("quarter" in each for each in found["notes"])
    code, found = said("ask", COUNT, "--error", f"{DEAR:g}")
    assert (code, found["error"]["code"]) == (2, "input.invalid") and f"--epsilon {costs:g}" in found["error"]["fix"]
    code, found = said("ask", COUNT, "--error", f"{DEAR:g}", "--epsilon", f"{costs:g}")
    assert code == 0 and found["charge"]["epsilon"] == costs


@pytest.mark.parametrize(("said", "named", "most"), [(0.5, 0.3, 0.3), (0.3, 0.5, 0.3), (0.5, None, 0.5)])
def test_of_two_ceilings_the_lower_one_holds(said, named, most):
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {said}) COUNT(*) AS n FROM people"
    assert settle_price(sql, named, None, at_most=True) == (most, None)


def test_limits_far_above_the_tables_own_are_named_as_ones_that_do_not_hold(ana):
    asked = {"question": COUNT, "epsilon": 0.1, "limits": {"rows": 10**99, "totals": {"age": "1e999"}}}
    (note, *_) = ana.obtain("question", asked).notes
    assert note == "The table's own limit of rows is lower than the one you gave, and holds: 20."
