"""H13: a delta that is no probability is refused before anything is charged or read."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.attack.hostile import nothing_charged, people, protected, state

from dalenius.errors import NOTHING, InputError
from dalenius.measuring.engines.duckdb.connections import DuckDB

QUESTION = "SELECT COUNT(*) FROM visits"
BAD: list[Any] = [
    -1,
    -1e-9,
    math.nan,
    math.inf,
    -math.inf,
    1,
    1.0,
    2,
    10**400,
    Fraction(3, 2),
    1e-320,
    True,
    False,
    "x",
    "0.1",
]
BAD += [Decimal("0.1"), b"0", [0.1], 1j]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h13"), people(victim=True))


@pytest.mark.parametrize("delta", BAD, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("call", ["ask", "preview"])
def test_a_delta_that_is_no_probability_is_refused_and_costs_nothing(curator, monkeypatch, delta, call):
    monkeypatch.setattr(DuckDB, "run", lambda *_, **__: pytest.fail("the data was touched"))
    eve = curator.analyst("eve")
    with nothing_charged(curator), pytest.raises(InputError) as refusal:
        getattr(eve, call)(QUESTION, epsilon=0.1, delta=delta)
    assert (refusal.value.code, refusal.value.exit_code) == ("input.invalid", 2)
    assert refusal.value.charge == NOTHING
    assert "delta" in refusal.value.message


@pytest.mark.parametrize("delta", [0, 0.0, -0.0, 1e-9, Fraction(1, 10**9)])
def test_a_sound_delta_passes_and_is_not_charged_where_no_part_needs_one(tmp_path, delta):
    """Teeth for the test above: the same call is answered, and the ledger moves."""
    curator = protected(tmp_path, people(victim=True))
    before = state(curator)
    release = curator.analyst("eve").ask(QUESTION, epsilon=0.1, delta=delta)
    assert state(curator) != before
    assert release.charge["delta"] == 0


@pytest.mark.parametrize("delta", ["-1", "nan", "1", "2", "inf", '"x"', "true"])
def test_a_budget_with_a_bad_delta_is_never_made(tmp_path, delta):
    from dalenius.errors import DaleniusError

    with pytest.raises(DaleniusError) as refusal:
        protected(tmp_path, people(victim=True), delta=delta)
    assert refusal.value.exit_code == 2
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("typed", ["-1", "nan", "1", "2", "True", "x"])
def test_the_command_refuses_them_too(curator, capsys, typed):
    from dalenius.app.cli import build, run

    home = ["--home", str(curator.home), "--analyst", "eve", "--json"]
    with nothing_charged(curator):
        assert run(build(), ["ask", QUESTION, "--epsilon=0.1", f"--delta={typed}", *home]) == 2
    assert '"code": "input.invalid"' in capsys.readouterr().out
