"""Questions that find their own limits, from the analyst's side: price, answer, notes, repeats, command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.analyst import Analyst
from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.measuring.plan import Limits

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 9.0
delta = 1e-6
[analysts.ana]
epsilon = 9.0
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 1000]
step = 0.01
"""
RARE = "SELECT COUNT(*) AS n FROM visits WHERE region = 'west'"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    chance = random.Random(8)
    people = [person for person in range(20_000) for _ in range(min(90, 1 + int(chance.paretovariate(1.5))))]
    rows = {
        "person": people,
        "region": [chance.choices(["north", "south", "east", "west"], [9, 9, 9, 1])[0] for _ in people],
        "amount": [min(1000.0, 5 * chance.paretovariate(1.2)) for _ in people],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(POLICY)
    Curator(folder / "home").protect(folder / "visits.toml")
    return folder / "home"


@pytest.fixture
def ana(home: Path) -> Analyst:
    return Curator(home).analyst("ana")


def test_a_selective_question_finds_a_lower_limit_and_less_noise(ana):
    plain = ana.ask(RARE, epsilon=0.5, limits=Limits(search=0))
    release = ana.ask(RARE, epsilon=0.5)
    assert plain.limits == () and not release.free
    (limit,) = release.limits
    assert limit["measure"] == "rows" and limit["share"] == 0.1 and limit["limit"] < limit["of"]
    assert 0 <= limit["beyond"] < 0.2
    assert release.noise_error[0][0] < plain.noise_error[0][0] / 2
    said = f"found its own limit: at most {limit['limit']} rows of one person count instead of {limit['of']}"
    assert any(said in note for note in release.notes)
    assert release.charge["epsilon"] == 0.5
    assert release.charge["rho"] == pytest.approx(plain.charge["rho"])
    again = ana.ask(RARE.replace(" AS n", " AS other"), epsilon=0.4)
    assert again.free and (again.limits, again.rows) == (release.limits, release.rows)
    assert json.loads(json.dumps(release.to_dict()))["limits"] == [limit]


def test_sums_over_groups_are_limited_by_the_norm_that_units_have(ana):
    release = ana.ask("SELECT region, SUM(amount) FROM visits GROUP BY region", epsilon=0.5)
    (limit,) = release.limits
    assert limit["measure"] == "sum of amount" and limit["limit"] <= limit["of"]


def test_a_preview_promises_no_less_noise_than_there_will_be(ana):
    preview = ana.preview(RARE, epsilon=0.5)
    assert preview.search == preview.to_dict()["search"] == 0.1
    assert "first finds its own limits with 10% of the price" in str(preview)
    assert "search  a lower norm first" in preview.plan
    release = ana.ask(RARE, epsilon=0.5)
    assert release.noise_error[0][0] <= preview.choices[0].noise_error[0]
    assert ana.preview("SELECT COUNT(*) FROM visits", epsilon=0.5).search == 0


def test_a_question_priced_by_its_error_finds_its_own_limits_as_others_do(ana):
    assert ana.preview(RARE, error=400.0).search == 0.1
    assert ana.preview(RARE, error=400.0, limits=Limits(search=0.2)).search == 0.2
    found = ana.preview(RARE, error=400.0).choices[0].epsilon
    kept = ana.preview(RARE, error=400.0, limits=Limits(search=0)).choices[0].epsilon
    assert found < kept  # a lower limit costs less
    release = ana.ask(RARE, error=400.0)
    assert release.limits and release.noise_error[0][0] <= 800


def test_the_command_line_takes_a_share(home, capsys):
    def said(*arguments: str) -> Any:
        assert run(build(), [*arguments, RARE, "--home", str(home), "--epsilon", "0.3", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert said("preview")["search"] == 0.1
    assert said("preview", "--find-limits", "0.25")["search"] == 0.25
    assert said("preview", "--find-limits", "0")["search"] == 0
    assert said("ask", "--find-limits", "0.25")["limits"][0]["share"] == 0.25
    assert run(build(), ["preview", RARE, "--home", str(home), "--find-limits", "0.7"]) == 2
